"""A memory of spans whose request is over, so that what goes on in the background can be told from a new request."""

from __future__ import annotations

from collections.abc import Iterable

_GENERATION = 5_000


class EndedSpans:
    """Remembers at least the last few thousand ids, in two generations of which the older one is dropped whole."""

    def __init__(self) -> None:
        self._young: dict[str, None] = {}
        self._old: dict[str, None] = {}

    def add(self, span_ids: Iterable[str]) -> None:
        young = self._young
        young.update(dict.fromkeys(span_ids))
        if len(young) > _GENERATION:
            self._old, self._young = young, {}

    def __contains__(self, span_id: str) -> bool:
        return span_id in self._young or span_id in self._old
