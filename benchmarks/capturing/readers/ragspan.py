"""ragspan: its records are what its metrics read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from capturing.grading import Seen
from ragspan.records import RagRecord
from ragspan.testing import RecordingSink


class Ragspan:
    def __init__(self, framework: str) -> None:
        self._sink = RecordingSink()
        self.callbacks: Sequence[Any] = ()
        if framework == "langchain":
            from ragspan_langchain import RagspanCallbackHandler

            self.callbacks = [RagspanCallbackHandler(sink=self._sink)]
        else:
            from ragspan_llama_index import RagspanLlamaIndexInstrumentor

            RagspanLlamaIndexInstrumentor().instrument(sink=self._sink)

    def begin(self) -> None:
        """It stays attached."""

    def seen(self) -> list[Seen]:
        return [seen_of(record) for record in self.records()]

    def records(self) -> list[RagRecord]:
        return self._sink.records()


def seen_of(record: RagRecord) -> Seen:
    return Seen(
        question=record.question,
        contexts=None if record.contexts is None else tuple(context.text for context in record.contexts),
        response=record.response,
        background=tuple(each.text for each in record.background),
        is_unfinished=record.status != "complete",
    )


def attach(framework: str) -> Ragspan:
    return Ragspan(framework)
