"""LangChain's handler under test."""

from __future__ import annotations

from typing import Any

from captures import Captures, CollectingSink

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
