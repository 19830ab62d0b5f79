"""Keeps one resource an event loop, such as a client with its open connections.

Guarantees:
- A resource is only ever used in the loop, and in the process, that it was opened in.
- It is closed in its loop: when its holder is collected, or else when the loop shuts down its asynchronous generators,
  as `asyncio.run` does at its end. Nobody has to close anything.
- After a fork the child opens its own, and neither uses nor closes those of its parent: their sockets are shared.
- One resource is held for each living loop; those of closed loops are let go with the next use.

Several threads may use it at once, each with its own loop, without a lock: an entry is written by its own loop's
thread alone, and a lock held during a fork would never be released in the child.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import weakref
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager
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
