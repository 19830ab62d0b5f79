"""The open clients of an endpoint: one event loop each, and each for a few requests at a time."""

from __future__ import annotations

import asyncio
import contextlib
import os
import weakref
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from openai import AsyncOpenAI

_REQUESTS_EACH = 8
"""Requests that one client has at a time, as long as there are fewer than `_MOST_CLIENTS`."""
_MOST_CLIENTS = 32
"""In one event loop; more requests share these."""


@dataclass(slots=True, eq=False)
class _Open:
    """A client that is open."""

    client: AsyncOpenAI
    lifetime: AsyncGenerator[AsyncOpenAI, None]
    loop: asyncio.AbstractEventLoop
    pid: int
    requests: int = 0


class ClientPool:
    """Clients with their open connections: one event loop each, and each for a few requests at a time.

    The pool of an HTTP client looks at all of its connections twice for each request, and asks the operating system about
    those that are idle. With 64 requests at a time this took a third of the processor time; with eight it takes almost none.

    Guarantees:
    - A client is only used in the loop, and in the process, that it was opened in; the child of a fork opens its own.
    - It is closed in its loop: when the pool is collected, or when the loop shuts down its asynchronous generators, as
      `asyncio.run` does at its end. Nobody has to close anything.
    - The clients of a closed loop are released when another client is opened.

    The pool has no lock, which a fork could leave held in the child for ever: only a loop's own thread uses its clients.

    Args:
        opening: opens a client, without waiting for anything.
    """

    def __init__(self, opening: Callable[[], AsyncOpenAI]) -> None:
        self._opening = opening
        self._open: dict[_Open, None] = {}
        weakref.finalize(self, _close_soon, self._open).atexit = False

    @asynccontextmanager
    async def borrowed(self) -> AsyncIterator[AsyncOpenAI]:
        """A client of the running loop for one request: the first that has room, a new one, or the one with most room."""
        loop, pid = asyncio.get_running_loop(), os.getpid()
        clients = [one for one in list(self._open) if one.loop is loop and one.pid == pid]
        one = next((one for one in clients if one.requests < _REQUESTS_EACH), None)
        if one is None and len(clients) < _MOST_CLIENTS:
            for known in (self._open, _alive):
                for gone in [one for one in list(known) if one.loop.is_closed()]:
                    known.pop(gone, None)
            lifetime = _lifetime(self._opening)
            one = _Open(await anext(lifetime), lifetime, loop, pid)
            self._open[one] = _alive[one] = None
        one = one or min(clients, key=lambda one: one.requests)
        one.requests += 1
        try:
            yield one.client
        finally:
            one.requests -= 1


async def _lifetime(opening: Callable[[], AsyncOpenAI]) -> AsyncGenerator[AsyncOpenAI, None]:
    """Yields the client once and closes it when it is closed itself, which every loop does with its generators."""
    async with opening() as client:
        yield client


def _close_soon(opened: Iterable[_Open]) -> None:
    for one in opened:
        if one.pid == os.getpid():
            with contextlib.suppress(RuntimeError):  # the loop is closed
                one.loop.call_soon_threadsafe(_start_closing, one)


def _start_closing(one: _Open) -> None:
    closing = one.loop.create_task(_close(one))
    _closing.add(closing)
    closing.add_done_callback(_closing.discard)


async def _close(one: _Open) -> None:
    """Close it. If the loop ends and cancels this before it starts, the loop closes it."""
    await one.lifetime.aclose()
    _alive.pop(one, None)


_closing: set[asyncio.Task[None]] = set()
_alive: dict[_Open, None] = {}
"""What is open. If one of these were collected, its loop would begin to close it: perhaps too late to finish before the loop
ends, and perhaps in a forked child, which must not."""
