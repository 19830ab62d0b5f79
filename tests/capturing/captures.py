"""A handler under test, and what it handed over."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from ragspan.records import Capture, RagRecord


class CollectingSink:
    """Keeps captures until somebody asks for the records, and the names of errors that the handler counted."""

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
    error_type: str | None = None
    swallowed: Sequence[str] = ()
    evidence: Sequence[str | None] = ()
    """The ids of the leaf passages."""
    background: ClassVar[None] = None
    """It says nothing of what else the prompts held; `Grounded` does."""

    @classmethod
    def of(cls, record: RagRecord) -> Answered:
        return cls(
            record.question,
            None if record.contexts is None else [context.text for context in record.contexts],
            record.response,
            record.status,
            record.error_type,
            record.swallowed_errors,
            tuple(passage.id for passage in record.evidence),
        )


@dataclass(frozen=True, kw_only=True)
class Grounded:
    """An answer with all that it rests on, and why its contexts are not known; background is kinds and texts."""

    question: str | None
    contexts: Sequence[str] | None
    response: str | None
    background: Sequence[tuple[str, str]] = ()
    unknown: str | None = None
    status: str = "complete"

    @classmethod
    def of(cls, record: RagRecord) -> Grounded:
        return cls(
            question=record.question,
            contexts=None if record.contexts is None else [context.text for context in record.contexts],
            response=record.response,
            background=[(each.kind, each.text) for each in record.background],
            unknown=record.contexts_unknown,
            status=record.status,
        )


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


class Captures:
    """A framework's handler with a sink of its own."""

    seen: ClassVar[list[RagRecord]] = []
    """The records that a test has looked at, for those who look at them whole."""

    def __init__(self, handler: type, sink: CollectingSink | None = None) -> None:
        self.sink = CollectingSink() if sink is None else sink
        self.handler: Any = handler(sink=self.sink)

    def records(self) -> list[RagRecord]:
        """The records of the requests that ended since the last call, in the order in which they began."""
        made = [capture.to_record() for capture in self.sink.take()]
        records = sorted((record for record in made if record is not None), key=lambda record: record.started_ns)
        self.seen += records
        return records

    def record(self) -> RagRecord:
        """The record of the only request."""
        (record,) = self.records()
        return record

    def answers(self) -> list[Answered]:
        return [Answered.of(record) for record in self.records()]

    def grounded_answers(self) -> list[Grounded]:
        return [Grounded.of(record) for record in self.records()]

    def answer(self) -> Answered:
        return Answered.of(self.record())


async def until(condition: Callable[[], object]) -> None:
    """Let the event loop turn until something holds; what never comes to hold is for the test's assertions to find."""
    for _ in range(500):
        if condition():
            return
        gc.collect(0)
        await asyncio.sleep(0)
