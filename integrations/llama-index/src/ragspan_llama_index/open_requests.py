"""The requests that have not ended, and what becomes of those that never do."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ragspan_llama_index.steps import Request


class OpenRequests:
    """Open requests in the order of their start; a bounded number of them, for a bounded time.

    Args:
        give_up: is called with the oldest where there are too many, and with those in which nothing begins any more.
        max_open: how many there may be.
        max_seconds: after which a request in which nothing new begins is given up.
        sweep_seconds: at least between two looks for such requests.
    """

    def __init__(
        self, give_up: Callable[[Request], None], *, max_open: int, max_seconds: float, sweep_seconds: float
    ) -> None:
        self._give_up = give_up
        self._max_open = max_open
        self._max_ns = int(max_seconds * 1e9)
        self._sweep_ns = int(sweep_seconds * 1e9)
        self._next_sweep_ns = 0
        self._requests: dict[int, Request] = {}  # by identity

    def __iter__(self) -> Iterator[Request]:
        return iter(list(self._requests.values()))

    def add(self, request: Request) -> None:
        """Note a request that begins, and look for others that should have ended."""
        self._requests[id(request)] = request
        while len(self._requests) > self._max_open:
            self._give_up(next(iter(self._requests.values())))
        now_ns = request.started_ns
        if now_ns >= self._next_sweep_ns:
            self._next_sweep_ns = now_ns + self._sweep_ns
            for each in self:
                if each.last_start_ns < now_ns - self._max_ns:
                    self._give_up(each)

    def remove(self, request: Request) -> None:
        self._requests.pop(id(request), None)
