"""Steps without a common root that belong to one answer, because the program says so."""

from __future__ import annotations

from collections.abc import Callable

from ragspan.records import Capture
from ragspan_llama_index.steps import Request


class Group:
    """What one tracker sees inside a `ragspan.capture` block; a part of that answer."""

    def __init__(self, request: Request, *, close: Callable[[Request], Capture]) -> None:
        self.request = request
        self._close = close

    def close(self) -> Capture:
        return self._close(self.request)
