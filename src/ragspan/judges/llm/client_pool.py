"""Clients with their open connections: one event loop each, and each for a few requests at a time.

The pool of an HTTP client looks at all of its connections twice for each request, and asks the operating system about
those that are idle. With 64 requests at a time, a third of the processor time went there; with eight, next to nothing.

Guarantees:
- A client is only used in the loop, and in the process, that it was opened in.
- It is closed in its loop: when its holder is collected, or else when the loop shuts down its asynchronous generators,
  as `asyncio.run` does at its end. Nobody has to close anything.
- After a fork the child opens its own, and neither uses nor closes those of its parent: their sockets are shared.
- One client is held for each living loop; those of closed loops are released with the next use.
- Clients are opened when they are needed: with up to `each` requests at a time there is one. Any thread may borrow.

`PerLoop` needs no lock: an entry is written by its own loop's thread alone, and a lock held during a fork would never be
released in the child.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import weakref
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class _Held(Generic[_T]):
    resource: _T
    lifetime: AsyncGenerator[_T, None]
    pid: int


class PerLoop(Generic[_T]):
    """Opens a resource at the first use in a loop and hands out the same one from then on."""

    def __init__(self, opening: Callable[[], AbstractAsyncContextManager[_T]]) -> None:
        self._opening = opening
        self._held: dict[asyncio.AbstractEventLoop, _Held[_T]] = {}
        weakref.finalize(self, _close_soon, self._held).atexit = False

    async def current(self) -> _T:
        """The resource of the running loop."""
        loop = asyncio.get_running_loop()
        held = self._held.get(loop)
        if held is None or held.pid != os.getpid():
            self._let_go_of_closed_loops()
            lifetime = _lifetime(self._opening)
            held = self._held[loop] = _Held(await anext(lifetime), lifetime, os.getpid())
            _alive[lifetime] = loop
        return held.resource

    def _let_go_of_closed_loops(self) -> None:
        for loop in list(self._held):
            if loop.is_closed():
                self._held.pop(loop, None)
        for lifetime, loop in list(_alive.items()):
            if loop.is_closed():
                _alive.pop(lifetime, None)


async def _lifetime(opening: Callable[[], AbstractAsyncContextManager[_T]]) -> AsyncGenerator[_T, None]:
    """Yields the resource once and closes it when it is closed itself, which every loop does with its generators."""
    async with opening() as resource:
        yield resource


def _close_soon(held: dict[asyncio.AbstractEventLoop, _Held[_T]]) -> None:
    for loop, entry in held.items():
        if entry.pid == os.getpid():
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(_start_closing, loop, entry.lifetime)


def _start_closing(loop: asyncio.AbstractEventLoop, lifetime: AsyncGenerator[object, None]) -> None:
    closing = loop.create_task(_close(lifetime))
    _closing.add(closing)
    closing.add_done_callback(_closing.discard)


async def _close(lifetime: AsyncGenerator[object, None]) -> None:
    """Close it, unless the loop is ending and cancels this before it starts: then the loop closes it."""
    await lifetime.aclose()
    _alive.pop(lifetime, None)


_closing: set[asyncio.Task[None]] = set()
_alive: dict[AsyncGenerator[object, None], asyncio.AbstractEventLoop] = {}
"""What is open, and where. Were one of these collected, its loop would begin to close it: perhaps too late to finish
before the loop ends, and perhaps in a forked child, which must not."""


@dataclass(slots=True, eq=False)
class _Lane(Generic[_T]):
    clients: PerLoop[_T]
    requests: int = 0


class ClientPool(Generic[_T]):
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
