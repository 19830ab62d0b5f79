"""Agents that the tests are built from; their model plays a script."""

from __future__ import annotations

from typing import Any

from li_programs import TopicRetriever, retriever
from llama_index.core.agent.workflow import AgentOutput, FunctionAgent, ReActAgent
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.tools import RetrieverTool


def agent(*tools: Any, **options: Any) -> FunctionAgent:
    """An agent that calls functions."""
    return FunctionAgent(tools=list(tools), **options)


def reasoning_agent(*tools: Any, **options: Any) -> ReActAgent:
    """An agent that writes down its thoughts and which tool it wants."""
    return ReActAgent(tools=list(tools), **options)


def retriever_tool(*names: str, **options: Any) -> RetrieverTool:
    """A tool called `look_up` that finds these passages, or else one for each instrument that it is asked about."""
    source: BaseRetriever = retriever(*names) if names else TopicRetriever()
    return RetrieverTool.from_defaults(source, name="look_up", description="Looks things up.", **options)


async def ask(asked: Any, text: str, **options: Any) -> AgentOutput:
    """Run an agent to its end."""
    return await asked.run(user_msg=text, **options)


def thinks(action: str, action_input: str) -> str:
    """What a reasoning model says when it wants a tool."""
    return f"Thought: I should look it up.\nAction: {action}\nAction Input: {action_input}\n"


def concludes(answer: str) -> str:
    """What a reasoning model says when it knows the answer."""
    return f"Thought: I can answer without using any more tools.\nAnswer: {answer}\n"
