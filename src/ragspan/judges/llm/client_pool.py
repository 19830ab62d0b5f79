"""Clients with their open connections: one event loop each, and each for a few requests at a time.

The pool of an HTTP client looks at all of its connections twice for each request, and asks the operating system about
those that are idle. With 64 requests at a time this took a third of the processor time; with eight it takes almost none.

Guarantees:
- A client is only used in the loop, and in the process, that it was opened in.
- It is closed in its loop: when the pool is collected, or when the loop shuts down its asynchronous generators, as
  `asyncio.run` does at its end. Nobody has to close anything.
- After a fork the child opens its own clients. It neither uses nor closes those of its parent, whose sockets it shares.
- The clients of a closed loop are released when another loop opens its first.
- A client is opened when it is needed: with up to `each` requests at a time there is one. Any thread may borrow.

The pool has no lock, which a fork could leave held in the child for ever: only a loop's own thread writes its entry.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import weakref
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

_T = TypeVar("_T")


@dataclass(slots=True, eq=False)
class _Open(Generic[_T]):
    """A client that is open."""

    client: _T
    lifetime: AsyncGenerator[_T, None]
    requests: int = 0


@dataclass(frozen=True, slots=True)
class _OfLoop(Generic[_T]):
    """The clients of one loop in one process."""

    open: list[_Open[_T]]
    pid: int


class ClientPool(Generic[_T]):
    """Clients, each for a few requests at a time.

    Args:
        opening: opens a client, without waiting for anything.
        each: requests that one client has at a time, as long as there are fewer than `most` clients.
        most: clients in one event loop; more requests share these.
    """

    def __init__(
        self, opening: Callable[[], AbstractAsyncContextManager[_T]], *, each: int = 8, most: int = 32
    ) -> None:
        self._opening = opening
        self._each = each
        self._most = most
        self._held: dict[asyncio.AbstractEventLoop, _OfLoop[_T]] = {}
        weakref.finalize(self, _close_soon, self._held).atexit = False

    @asynccontextmanager
    async def borrowed(self) -> AsyncIterator[_T]:
        """A client of the running loop, for one request."""
        one = await self._with_room(asyncio.get_running_loop())
        one.requests += 1
        try:
            yield one.client
        finally:
            one.requests -= 1

    async def _with_room(self, loop: asyncio.AbstractEventLoop) -> _Open[_T]:
        """The first client that has room, a new one, or the one with the fewest requests."""
        held = self._held.get(loop)
        if held is None or held.pid != os.getpid():
            self._let_go_of_closed_loops()
            held = self._held[loop] = _OfLoop([], os.getpid())
        with_room = next((one for one in held.open if one.requests < self._each), None)
        if with_room is None and len(held.open) < self._most:
            lifetime = _lifetime(self._opening)
            with_room = _Open(await anext(lifetime), lifetime)
            _alive[lifetime] = loop
            held.open.append(with_room)
        return with_room or min(held.open, key=lambda one: one.requests)

    def _let_go_of_closed_loops(self) -> None:
        for loop in list(self._held):
            if loop.is_closed():
                self._held.pop(loop, None)
        for lifetime, loop in list(_alive.items()):
            if loop.is_closed():
                _alive.pop(lifetime, None)


async def _lifetime(opening: Callable[[], AbstractAsyncContextManager[_T]]) -> AsyncGenerator[_T, None]:
    """Yields the client once and closes it when it is closed itself, which every loop does with its generators."""
    async with opening() as client:
        yield client


def _close_soon(held: dict[asyncio.AbstractEventLoop, _OfLoop[_T]]) -> None:
    for loop, clients in held.items():
        if clients.pid == os.getpid():
            for one in clients.open:
                with contextlib.suppress(RuntimeError):  # the loop is closed
                    loop.call_soon_threadsafe(_start_closing, loop, one.lifetime)


def _start_closing(loop: asyncio.AbstractEventLoop, lifetime: AsyncGenerator[object, None]) -> None:
    closing = loop.create_task(_close(lifetime))
    _closing.add(closing)
    closing.add_done_callback(_closing.discard)


async def _close(lifetime: AsyncGenerator[object, None]) -> None:
    """Close it. If the loop ends and cancels this before it starts, the loop closes it."""
    await lifetime.aclose()
    _alive.pop(lifetime, None)


_closing: set[asyncio.Task[None]] = set()
_alive: dict[AsyncGenerator[object, None], asyncio.AbstractEventLoop] = {}
"""What is open, and in which loop. If one of these were collected, its loop would begin to close it: perhaps too late to
finish before the loop ends, and perhaps in a forked child, which must not."""
