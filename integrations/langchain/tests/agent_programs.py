"""Agents and graphs that the tests are built from."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Sequence
from typing import Any, TypedDict

from langchain.agents import create_agent
from langchain_core.documents import Document
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGenerationChunk
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool, create_retriever_tool
from langgraph.graph import START, StateGraph
from rag_programs import PROMPT, TopicRetriever, chat_model, join_texts, look_up


class ScriptedModel(GenericFakeChatModel):
    """Plays back messages, some of them tool calls; takes any tools."""

    def bind_tools(self, tools, **kwargs):
        return self

    def _stream(self, messages, stop=None, run_manager=None, **kwargs):
        message = next(self.messages)
        called = [
            tool_call_chunk(name=call["name"], args=json.dumps(call["args"]), id=call["id"], index=place)
            for place, call in enumerate(message.tool_calls)
        ]
        words = re.split(r"(?<=\s)", message.text)
        for place, word in enumerate(words):
            last = place == len(words) - 1
            chunk = AIMessageChunk(
                word, tool_call_chunks=called if last else [], chunk_position="last" if last else None
            )
            if run_manager:
                run_manager.on_llm_new_token(word, chunk=ChatGenerationChunk(message=chunk))
            yield ChatGenerationChunk(message=chunk)


def scripted_model(*script: AIMessage | str) -> ScriptedModel:
    return ScriptedModel(messages=iter([AIMessage(line) if isinstance(line, str) else line for line in script]))


_call_numbers = itertools.count(1)


def calls(*tool_calls: tuple[str, dict[str, Any]], text: str = "") -> AIMessage:
    """An assistant message that calls tools: `calls(search("pump"))`."""
    return AIMessage(
        text,
        tool_calls=[
            {"name": name, "args": args, "id": f"call-{next(_call_numbers)}", "type": "tool_call"}
            for name, args in tool_calls
        ],
    )


def search(query: str) -> tuple[str, dict[str, Any]]:
    """A call of the tool made by `search_tool`."""
    return "search_manual", {"query": query}


def search_tool() -> BaseTool:
    """A retriever tool that returns text for the model and the documents as artifact."""
    return create_retriever_tool(
        TopicRetriever(), "search_manual", "Search the manual.", response_format="content_and_artifact"
    )


def search_agent(*script: AIMessage | str, **options: Any) -> Runnable:
    """An agent with the search tool, whose model plays this script."""
    return create_agent(scripted_model(*script), [search_tool()], **options)


def agent_with(*tools: BaseTool, script: Sequence[AIMessage | str], **options: Any) -> Runnable:
    """An agent with tools of the test's own, whose model plays this script."""
    return create_agent(scripted_model(*script), list(tools), **options)


def user_says(text: str) -> dict[str, Any]:
    return {"messages": [("user", text)]}


class RagState(TypedDict):
    question: str
    context: list[Document]
    answer: str


def retrieve_node(state: RagState) -> dict[str, Any]:
    return {"context": look_up(state["question"])}


def answer_node(state: RagState) -> dict[str, Any]:
    messages = PROMPT.invoke({"question": state["question"], "context": join_texts(state["context"])})
    return {"answer": chat_model().invoke(messages).text}


def sequence(state: type, *nodes: Any, **options: Any) -> Runnable:
    """A graph of nodes that run one after the other, each under its function's name."""
    graph = StateGraph(state)
    graph.add_sequence(list(nodes))
    graph.add_edge(START, nodes[0].__name__)
    return graph.compile(**options)


def rag_graph(retrieve: Callable[[RagState], Any] = retrieve_node, **options: Any) -> Runnable:
    """A graph of two nodes: retrieve, answer."""
    return sequence(RagState, retrieve, answer_node, **options)
