"""Keeps one resource an event loop, such as a client with its open connections.

Guarantees:
- A resource is only ever used in the loop that it was opened in, and in the process.
- It is closed in its loop: when the loop shuts down its asynchronous generators, as `asyncio.run` does at its end, or
  when its holder is collected while the loop still runs. Nothing has to be called for that.
- After a fork the child opens its own, and neither uses nor closes those of its parent: their sockets are shared.
- At most one resource is held for each living loop; those of closed loops are let go with the next use.

Several threads may use it at once, each with its own loop, without a lock: an entry is written by its own loop's
thread alone, and a lock held during a fork would never be released in the child.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager
from typing import Generic, TypeVar

_T = TypeVar("_T")


class PerLoop(Generic[_T]):
    """Opens a resource at the first use in a loop and hands out the same one from then on."""

    def __init__(self, opening: Callable[[], AbstractAsyncContextManager[_T]]) -> None:
        self._opening = opening
        self._pid = os.getpid()
        self._held: dict[asyncio.AbstractEventLoop, tuple[_T, AsyncGenerator[_T, None]]] = {}

    async def current(self) -> _T:
        """The resource of the running loop."""
        if self._pid != os.getpid():
            _inherited.append(self._held)
            self._held, self._pid = {}, os.getpid()
        loop = asyncio.get_running_loop()
        if loop not in self._held:
            for other in [other for other in list(self._held) if other.is_closed()]:
                self._held.pop(other, None)
            lifetime = _lifetime(self._opening)
            self._held[loop] = (await anext(lifetime), lifetime)
        return self._held[loop][0]


async def _lifetime(opening: Callable[[], AbstractAsyncContextManager[_T]]) -> AsyncGenerator[_T, None]:
    """Yields the resource once, and closes it when the loop, or the garbage collector, closes the generator."""
    async with opening() as resource:
        yield resource


_inherited: list[object] = []
"""The parents' resources, kept for good in a forked child: collecting them would close them."""
