"""Spans that belong to no request, so that what goes on inside them makes no record."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

_REQUESTS = 128
_MAX_SPANS = 50_000


class SpansApart:
    """Spans that were set apart, and those of the requests that ended last, which may go on in the background."""

    def __init__(self) -> None:
        self._open: dict[str, None] = {}
        self._ended: dict[str, None] = {}
        self._requests: deque[Mapping[str, None]] = deque()

    def __len__(self) -> int:
        """How many of them are open."""
        return len(self._open)

    def __contains__(self, span_id: str) -> bool:
        return span_id in self._open or span_id in self._ended

    def add(self, span_id: str) -> None:
        if len(self._open) >= _MAX_SPANS:
            self._open.clear()
        self._open[span_id] = None

    def add_ended(self, span_ids: Mapping[str, None]) -> None:
        """Note the spans of a request that is over."""
        self._ended.update(span_ids)
        self._requests.append(span_ids)
        if len(self._requests) > _REQUESTS:
            for old in self._requests.popleft():
                self._ended.pop(old, None)

    def remove(self, span_id: str) -> None:
        self._open.pop(span_id, None)

    def clear(self) -> None:
        self._open.clear()
