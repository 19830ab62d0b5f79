"""Runs without a common root that belong to one answer, because the program says so."""

from __future__ import annotations

from collections.abc import Callable

from ragspan.records import Capture
from ragspan_langchain.runs import Trace


class Group:
    """What one tracker sees inside a `ragspan.capture` block; a part of that answer."""

    def __init__(self, trace: Trace, *, close: Callable[[Trace], Capture]) -> None:
        trace.grouped = True
        self.trace = trace
        self._close = close

    def close(self) -> Capture:
        return self._close(self.trace)
