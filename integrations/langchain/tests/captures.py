"""A handler under test, and what it handed over."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ragspan.records import Capture, RagRecord
from ragspan_langchain import RagspanCallbackHandler


class CollectingSink:
    """Keeps captures until somebody asks for the records, and the names of errors that callbacks reported."""

    def __init__(self) -> None:
        self.captures: list[Capture] = []
        self.errors: list[str] = []
        self._lock = threading.Lock()

    def submit(self, capture: Capture) -> None:
        with self._lock:
            self.captures.append(capture)

    def count_error(self, name: str) -> None:
        self.errors.append(name)

    def take(self) -> list[Capture]:
        with self._lock:
            taken, self.captures = self.captures, []
        return taken


@dataclass(frozen=True)
class Answered:
    """What the contract says of a record; `contexts` are texts in prompt order, or None."""

    question: str | None
    contexts: Sequence[str] | None
    response: str | None
    status: str = "complete"

    @classmethod
    def of(cls, record: RagRecord) -> Answered:
        contexts = None if record.contexts is None else [context.text for context in record.contexts]
        return cls(record.question, contexts, record.response, record.status)


class InAnyOrder:
    """Equal to these answers, in whatever order they came."""

    __hash__ = None

    def __init__(self, answers: Iterable[Answered]) -> None:
        self._answers = list(answers)

    def __iter__(self) -> Iterator[Answered]:
        return iter(self._answers)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, list) and sorted(other, key=repr) == sorted(self._answers, key=repr)

    def __repr__(self) -> str:
        return f"in any order {self._answers}"


def config_for(sink: Any) -> Any:
    """What to call a chain with, so that this sink gets its answers."""
    return {"callbacks": [RagspanCallbackHandler(sink=sink)]}


class Captures:
    """A handler with a sink of its own."""

    def __init__(self, sink: CollectingSink | None = None) -> None:
        self.sink = CollectingSink() if sink is None else sink
        self.handler = RagspanCallbackHandler(sink=self.sink)

    @property
    def config(self) -> Any:
        """What to call a chain with."""
        return {"callbacks": [self.handler]}

    def thread(self, thread_id: str = "conversation") -> Any:
        """What to call a graph with that remembers a conversation."""
        return {"callbacks": [self.handler], "configurable": {"thread_id": thread_id}}

    def records(self) -> list[RagRecord]:
        """The records of the requests that ended since the last call, in the order in which they began."""
        made = [capture.to_record() for capture in self.sink.take()]
        return sorted((record for record in made if record is not None), key=lambda record: record.started_ns)

    def record(self) -> RagRecord:
        """The record of the only request."""
        (record,) = self.records()
        return record

    def answers(self) -> list[Answered]:
        return [Answered.of(record) for record in self.records()]

    def answer(self) -> Answered:
        return Answered.of(self.record())


async def until(condition: Callable[[], object]) -> None:
    """Let the event loop turn until something holds; what never comes to hold is for the test's assertions to find."""
    for _ in range(200):
        if condition():
            return
        await asyncio.sleep(0)


async def all_but(count: int, stream: Any) -> list[Any]:
    """Read `count` chunks of an asynchronous stream, then close it and let late callbacks come."""
    chunks = [await anext(stream) for _ in range(count)]
    await stream.aclose()
    return chunks
