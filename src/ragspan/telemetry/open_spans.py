"""The spans of answers that are being scored: started, not yet ended.

Safe to use from any thread.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass

from opentelemetry.trace import Span

from ragspan.records import RagRecord


@dataclass(frozen=True, kw_only=True, slots=True)
class AnswerSpans:
    """The spans of one answer that have been started."""

    answer: Span
    steps: tuple[Span, ...] = ()
    """One for each of the record's `steps`, in their order; none if they could not be started."""


class OpenSpans:
    """Spans by record, each given out once.

    A record that was submitted twice has two spans; they are given out in the order in which they were started.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._spans: dict[str, list[tuple[RagRecord, AnswerSpans]]] = {}
        self._closed = False

    def __len__(self) -> int:
        with self._lock:
            return sum(map(len, self._spans.values()))

    def add(self, record: RagRecord, spans: AnswerSpans) -> bool:
        """Keep the spans; False if it is too late for that."""
        with self._lock:
            if not self._closed:
                self._spans.setdefault(record.record_id, []).append((record, spans))
            return not self._closed

    def latest(self, record_id: str) -> AnswerSpans | None:
        """Those that were started last for the record, which are not given out by this."""
        with self._lock:
            spans = self._spans.get(record_id)
            return spans[-1][1] if spans else None

    def take(self, record_id: str) -> AnswerSpans | None:
        with self._lock:
            spans = self._spans.pop(record_id, [])
            if len(spans) > 1:
                self._spans[record_id] = spans[1:]
        return spans[0][1] if spans else None

    def close(self) -> list[tuple[RagRecord, AnswerSpans]]:
        """Everything that is left; nothing is kept from here on."""
        with self._lock:
            self._closed = True
            left, self._spans = self._spans, {}
        return [entry for spans in left.values() for entry in spans]
