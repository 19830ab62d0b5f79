"""Spreads requests over clients, so that none has many at a time.

The pool of an HTTP client looks at all of its connections twice for each request, and asks the operating system about
those that are idle. With 64 requests at a time, a third of the processor time went there; with eight, next to nothing.

Guarantees:
- Clients are opened when they are needed: with up to `each` requests at a time there is one.
- A fork starts with none of the requests of its parent. Any thread may borrow.
"""

from __future__ import annotations

import os
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

from ragspan.judges.llm.per_loop import PerLoop

_T = TypeVar("_T")


@dataclass(slots=True, eq=False)
class _Lane(Generic[_T]):
    clients: PerLoop[_T]
    requests: int = 0


class Spread(Generic[_T]):
    """Clients, each for a few requests at a time.

    Args:
        opening: opens a client.
        each: requests that one client has at a time, as long as there are fewer than `most` clients.
        most: clients in one event loop; from then on they share what comes.
    """

    def __init__(
        self, opening: Callable[[], AbstractAsyncContextManager[_T]], *, each: int = 8, most: int = 32
    ) -> None:
        self._opening = opening
        self._each = each
        self._most = most
        self._lanes: list[_Lane[_T]] = []
        self._lock = threading.Lock()
        self._pid = os.getpid()

    @asynccontextmanager
    async def borrowed(self) -> AsyncIterator[_T]:
        """A client of the running loop, for one request."""
        if self._pid != os.getpid():
            self._forget()
        lane = self._enter()
        try:
            yield await lane.clients.current()
        finally:
            with self._lock:
                lane.requests -= 1

    def _enter(self) -> _Lane[_T]:
        """The first that has room, so that those which are open are used before others are opened."""
        with self._lock:
            lane = next((lane for lane in self._lanes if lane.requests < self._each), None)
            if lane is None and len(self._lanes) < self._most:
                lane = _Lane(PerLoop(self._opening))
                self._lanes.append(lane)
            lane = lane or min(self._lanes, key=lambda one: one.requests)
            lane.requests += 1
            return lane

    def _forget(self) -> None:
        """In the child of a fork: the lock may be held by a thread that is not there, and the requests are the parent's."""
        self._lock = threading.Lock()
        self._lanes = []
        self._pid = os.getpid()
