"""A memory of spans whose request is over, so that what goes on in the background can be told from a new request."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

_REQUESTS = 128


class EndedSpans:
    """Remembers the ids of the requests that ended last."""

    def __init__(self) -> None:
        self._requests: deque[Mapping[str, None]] = deque(maxlen=_REQUESTS)

    def add(self, span_ids: Mapping[str, None]) -> None:
        self._requests.append(span_ids)

    def __contains__(self, span_id: str) -> bool:
        return any(span_id in span_ids for span_ids in tuple(self._requests))
