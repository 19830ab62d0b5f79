"""LangChain's handler under test."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from captures import Answered, Captures, CollectingSink
from langchain_core.runnables import RunnableLambda
from rag_programs import QUESTION

from ragspan_langchain import RagspanCallbackHandler


def config_for(sink: Any) -> Any:
    """What to call a chain with, so that this sink gets its answers."""
    return {"callbacks": [RagspanCallbackHandler(sink=sink)]}


class ChainCaptures(Captures):
    """A handler with a sink of its own."""

    def __init__(self, sink: CollectingSink | None = None) -> None:
        super().__init__(RagspanCallbackHandler, sink)

    @property
    def config(self) -> Any:
        """What to call a chain with."""
        return {"callbacks": [self.handler]}

    def thread(self, thread_id: str = "conversation") -> Any:
        """What to call a graph with that remembers a conversation."""
        return {"callbacks": [self.handler], "configurable": {"thread_id": thread_id}}


def answers(expected: Answered) -> Callable[[Callable[[str], Any]], Callable[[ChainCaptures], None]]:
    """Makes a test of a function of the question: it runs in a chain, and this answer is captured."""

    def test_of(program: Callable[[str], Any]) -> Callable[[ChainCaptures], None]:
        def test(captured: ChainCaptures) -> None:
            RunnableLambda(program).invoke(QUESTION, captured.config)

            assert captured.answers() == [expected]

        return test

    return test_of


async def all_but(count: int, stream: Any) -> list[Any]:
    """Read `count` chunks of an asynchronous stream, then close it and let late callbacks come."""
    chunks = [await anext(stream) for _ in range(count)]
    await stream.aclose()
    return chunks
