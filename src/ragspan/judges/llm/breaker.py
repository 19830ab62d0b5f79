"""A circuit breaker: while a service is out, no requests are sent to it.

Without it, every record would wait for the same timeouts, keep its place in the engine, and add load to the service at the
worst time.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator

from ragspan.exceptions import JudgeError
from ragspan.judges.llm.errors import is_outage, status_of

_FAILURES = 5
_PAUSE = 30.0  # seconds


class CircuitBreaker:
    """Watches the requests to one service; `clock` is in seconds that do not go backwards.

    Guarantees:
    - After `_FAILURES` requests in a row that failed because the service is out, all requests fail at once for `_PAUSE` seconds.
      Then one is sent as a trial: if it fails there is another pause, if it is answered all requests are sent again.
    - An error about one request (too long, filtered, malformed) does not count as a failure, nor as a success: a gateway before
      a dead model answers such requests, too. If it was the trial, the next request is the next trial.
    - A trial that never ends, because its thread hangs or its loop died, blocks nothing: after another pause there is the next.

    Any number of threads and event loops may use it. It has no lock, which a fork could leave held for ever: a race costs one
    failure that is not counted, or one trial too many.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failures = 0  # in a row
        self._next_trial = 0.0
        self._last: tuple[str, int | None] = "", None
        """What the last failure said, and its HTTP status."""

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Around one request.

        Raises:
            JudgeError: the service is out, and it is not yet time to try again.
        """
        if self._failures >= _FAILURES:
            wait = self._next_trial - self._clock()
            if wait > 0:
                message = f"{self._failures} requests in a row failed; the next is sent in {wait:.0f} s"
                words, status = self._last
                raise JudgeError("judge_unavailable", f"{message}. The last: {words}", outage=True, status=status)
            self._next_trial = self._clock() + _PAUSE
        try:
            yield
        except BaseException as error:
            known = error if isinstance(error, JudgeError) else None
            # A cancellation is nearly always a time limit.
            is_out = known.outage if known else isinstance(error, asyncio.CancelledError) or is_outage(error)
            self._failures += is_out
            if is_out:  # other errors than a judge's may quote the prompt
                self._last = str(known) if known else type(error).__name__, status_of(error)
            self._next_trial = self._clock() + (_PAUSE if is_out else 0)
            raise
        self._failures = 0
