"""LlamaIndex's side of `ragspan demo`: a query engine and an agent, with the handler attached as a user would."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import re
from collections.abc import Sequence
from typing import Any

from llama_index.core import PromptTemplate
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.generic_utils import (
    chat_to_completion_decorator,
    stream_chat_to_completion_decorator,
)
from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    ChatResponseAsyncGen,
    ChatResponseGen,
    CompletionResponse,
    CompletionResponseGen,
    LLMMetadata,
    MessageRole,
)
from llama_index.core.llms import LLM, CustomLLM
from llama_index.core.llms.callbacks import llm_chat_callback, llm_completion_callback
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import ToolSelection
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index.core.tools import BaseTool, RetrieverTool

from ragspan.demo.corpus import Passage, Search
from ragspan.demo.extractive import PROMPT, answer, split_prompt
from ragspan.demo.script import Asked, Manner, Way
from ragspan.exceptions import ConfigurationError
from ragspan_llama_index.handler import RagspanCallbackHandler

_TOOL = "search_documentation"
_TOKENS_READ = 12


class DocumentationRetriever(BaseRetriever):
    """Searches ragspan's documentation."""

    def __init__(self, search: Search) -> None:
        super().__init__()
        self._search = search

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [
            NodeWithScore(node=_node(passage), score=score)
            for passage, score in self._search.find(query_bundle.query_str)
        ]


def _node(passage: Passage) -> TextNode:
    return TextNode(
        id_=passage.id,
        text=passage.text,
        metadata={"source": passage.source},
        excluded_llm_metadata_keys=["source"],
    )


class ExtractiveModel(CustomLLM, FunctionCallingLLM):
    """Answers with sentences from the prompt; with a tool at hand it searches first."""

    manner: Manner = Manner.GOOD

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name="extractive", is_chat_model=True, is_function_calling_model=True)

    @llm_chat_callback()
    def chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        return ChatResponse(message=self._reply(messages, kwargs.get("tools")))

    @llm_chat_callback()
    def stream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponseGen:
        return _word_by_word(self._reply(messages, kwargs.get("tools")))

    @llm_chat_callback()
    async def astream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponseAsyncGen:
        return _in_turn(_word_by_word(self._reply(messages, kwargs.get("tools"))))

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:  # noqa: ARG002, FBT001, FBT002  the framework's signature
        return chat_to_completion_decorator(self.chat)(prompt, **kwargs)

    @llm_completion_callback()
    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponseGen:  # noqa: ARG002, FBT001, FBT002  as above
        return stream_chat_to_completion_decorator(self.stream_chat)(prompt, **kwargs)

    def _prepare_chat_with_tools(
        self,
        tools: Sequence[BaseTool],
        user_msg: str | ChatMessage | None = None,
        chat_history: list[ChatMessage] | None = None,
        *_: Any,
        **__: Any,
    ) -> dict[str, Any]:
        last = ChatMessage(user_msg) if isinstance(user_msg, str) else user_msg
        messages = [*(chat_history or []), *([last] if last is not None else [])]
        return {"messages": messages, "tools": [tool.metadata.name for tool in tools]}

    def get_tool_calls_from_response(self, response: ChatResponse, *_: Any, **__: Any) -> list[ToolSelection]:
        called: list[ToolSelection] = response.message.additional_kwargs.get("tool_calls", [])
        return called

    def _reply(self, messages: Sequence[ChatMessage], tools: Sequence[str] | None) -> ChatMessage:
        found = [message.content or "" for message in messages if message.role is MessageRole.TOOL]
        questions = [message.content or "" for message in messages if message.role is MessageRole.USER]
        if tools and not found:
            call = ToolSelection(tool_id="search-1", tool_name=tools[0], tool_kwargs={"input": questions[-1]})
            return ChatMessage("", role=MessageRole.ASSISTANT, additional_kwargs={"tool_calls": [call]})
        passages, question = ("\n\n".join(found), questions[-1]) if found else split_prompt(questions[-1])
        return ChatMessage(answer(question, passages, self.manner), role=MessageRole.ASSISTANT)


def _word_by_word(reply: ChatMessage) -> ChatResponseGen:
    text = ""
    for word in re.findall(r"\S+\s*", reply.content or "") or [""]:
        text += word
        message = ChatMessage(text, role=MessageRole.ASSISTANT, additional_kwargs=reply.additional_kwargs)
        yield ChatResponse(message=message, delta=word)


async def _in_turn(chunks: ChatResponseGen) -> ChatResponseAsyncGen:
    for chunk in chunks:
        yield chunk


class LlamaIndexDemo:
    """Answers the demo's questions with LlamaIndex."""

    def __init__(self, *, passages: Sequence[Passage], model: str | None) -> None:
        self._retriever = DocumentationRetriever(Search(passages))
        self._real_model = None if model is None else _real_model(model)
        self.handler = RagspanCallbackHandler()  # constructing it attaches it

    def answer(self, asked: Asked) -> list[str]:
        """Answer these questions in this way; returns what the caller got."""
        question = asked.questions[0]
        if asked.way is Way.AGENT:
            return [asyncio.run(self._ask_agent(question, asked.manner))]
        engine = self._engine(asked)
        if asked.way is Way.BATCH:
            return asyncio.run(_ask_all(engine, asked.questions))
        if asked.way is Way.STREAM:
            return [_read_all(engine, question)]
        if asked.way is Way.ASTREAM:
            return [asyncio.run(_read(engine, question))]
        if asked.way is Way.CLOSED_EARLY:
            return [_read_some(engine, question)]
        return [str(engine.query(question))]

    def _engine(self, asked: Asked) -> RetrieverQueryEngine:
        template = PromptTemplate(PROMPT.format(context="{context_str}", question="{query_str}"))
        return RetrieverQueryEngine.from_args(
            self._retriever,
            llm=self._model(asked.manner),
            text_qa_template=template,
            streaming=asked.way in _STREAMED,
        )

    async def _ask_agent(self, question: str, manner: Manner) -> str:
        tool = RetrieverTool.from_defaults(self._retriever, name=_TOOL, description="Searches ragspan's documentation.")
        agent = FunctionAgent(tools=[tool], llm=self._model(manner))
        return str(await agent.run(user_msg=question))

    def _model(self, manner: Manner) -> LLM:
        return self._real_model or ExtractiveModel(manner=manner)


_STREAMED = {Way.STREAM, Way.ASTREAM, Way.CLOSED_EARLY}


async def _ask_all(engine: RetrieverQueryEngine, questions: Sequence[str]) -> list[str]:
    return [str(response) for response in await asyncio.gather(*map(engine.aquery, questions))]


def _read_all(engine: RetrieverQueryEngine, question: str) -> str:
    response: Any = engine.query(question)  # the engine's settings say which of several kinds it is
    return "".join(response.response_gen)


async def _read(engine: RetrieverQueryEngine, question: str) -> str:
    response: Any = await engine.aquery(question)
    return "".join([token async for token in response.async_response_gen()])


def _read_some(engine: RetrieverQueryEngine, question: str) -> str:
    """Read as a user does who closes the page."""
    response: Any = engine.query(question)
    with contextlib.closing(response.response_gen) as tokens:
        return "".join(itertools.islice(tokens, _TOKENS_READ))


def _real_model(name: str) -> LLM:
    provider, colon, model = name.partition(":")
    if provider != "openai" or not colon or not model:
        raise ConfigurationError(f"--model is {name!r}, but should be 'openai:<name>', such as 'openai:gpt-4o-mini'")
    try:
        from llama_index.llms.openai import OpenAI
    except ImportError as error:
        raise ConfigurationError(
            "--model openai:… with LlamaIndex needs its package for OpenAI: pip install llama-index-llms-openai"
        ) from error
    # Each event loop needs a client of its own, and the demo runs several, one after the other.
    real: LLM = OpenAI(model, reuse_client=False)
    return real
