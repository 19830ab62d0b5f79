"""Who may ask the helper now: many at the same time, or one alone.

Guarantees:
- First come, first served: one who waits to ask alone is not passed by those who come later.
- A place that was taken is held until it is given back, which is when the answer comes, not when nobody waits for it any
  more. So what a helper that answers nothing was sent has a bound.

For use in one event loop.
"""

from __future__ import annotations

import asyncio
from collections import deque


class Turns:
    """So many places, of which one question takes one, and one that is asked alone takes all."""

    def __init__(self, places: int) -> None:
        self.places = places
        self.is_one_alone = False
        """One question has all places."""
        self._free = places
        self._line: deque[tuple[int, asyncio.Future[None]]] = deque()

    async def take(self, places: int) -> None:
        """Return when there is room, and it is taken."""
        if not self._line and places <= self._free:
            self._grant(places)
            return
        turn = asyncio.get_running_loop().create_future()
        self._line.append((places, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                self._let_in()  # those behind it may fit where it did not
            else:
                self.give_back(places)
            raise

    def give_back(self, places: int) -> None:
        self._free += places
        self.is_one_alone = False
        self._let_in()

    def _grant(self, places: int) -> None:
        self._free -= places
        self.is_one_alone = places == self.places

    def _let_in(self) -> None:
        while self._line:
            places, turn = self._line[0]
            if not turn.done():
                if places > self._free:
                    return
                self._grant(places)
                turn.set_result(None)
            self._line.popleft()
