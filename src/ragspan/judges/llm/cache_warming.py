"""Lets the first request about a case go ahead of the others, so that these find its beginning in the provider's cache.

Providers read a prompt from their cache from the moment that an earlier one with the same beginning has been read.
Requests that are sent at the same time each pay for the whole, and the metrics of a record start together.

Guarantees:
- Of the requests about a case one goes at once. The others wait until it has been answered or has failed, and never
  longer than the limit, counted from when it went.
- A request that is taken back while it waits holds up nobody; one that goes ahead and is taken back lets the others go.
- It works across event loops, threads and forks without a lock, which a fork could leave held for ever. A leader whose
  loop has ended costs the others no more than the limit.
- Bounded: the oldest cases are forgotten first.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

_MAX_CASES = 128
_TURNS = 2
"""Rounds of the event loop within which requests of metrics that start together are all there."""


class CacheWarming:
    """Who goes first, by case.

    Args:
        longest_wait: seconds that a request waits for the first one about its case; 0 lets all go at once.
        clock: monotonic seconds.
    """

    def __init__(self, longest_wait: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._longest_wait = longest_wait
        self._clock = clock
        self._leaders: dict[str, _Leader] = {}

    def __len__(self) -> int:
        return len(self._leaders)

    def __reduce__(self) -> tuple[type[CacheWarming], tuple[float]]:
        return CacheWarming, (self._longest_wait,)  # whom this process lets go is no business of another

    @asynccontextmanager
    async def turn(self, case: str, *, is_urgent: bool) -> AsyncIterator[None]:
        """Hold a request back until it is its turn; it is sent inside the block.

        Args:
            case: the same for requests that begin alike.
            is_urgent: another request depends on this one, so it should be the first if several come together.
        """
        if not self._longest_wait:
            yield
            return
        if not is_urgent:
            for _ in range(_TURNS):
                await asyncio.sleep(0)
        own = _Leader(went_at=self._clock())
        leader = self._leaders.setdefault(case, own)
        for oldest in list(self._leaders)[:-_MAX_CASES]:
            self._leaders.pop(oldest, None)
        if leader is not own:
            await self._follow(leader)
            yield
            return
        try:
            yield
        finally:
            own.is_back.set_result(None)

    async def _follow(self, leader: _Leader) -> None:
        if leader.is_back.done():
            return
        left = leader.went_at + self._longest_wait - self._clock()
        with contextlib.suppress(asyncio.TimeoutError):
            # What waits is a copy: who is cancelled, or waits no longer, takes the leader from nobody.
            await asyncio.wait_for(asyncio.wrap_future(leader.is_back), max(left, 0))


@dataclass(frozen=True, slots=True, eq=False)
class _Leader:
    went_at: float
    is_back: Future[None] = field(default_factory=Future)

    def __post_init__(self) -> None:
        self.is_back.set_running_or_notify_cancel()  # from now on nobody who waits can cancel it
