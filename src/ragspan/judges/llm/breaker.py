"""A circuit breaker: while a service is out, no requests are sent to it.

Without it, every record would wait for the same timeouts, keep its place in the engine, and add load to the service at the
worst time.

Guarantees:
- After `_FAILURES` requests in a row that failed because the service is out, all requests fail at once for a pause of about
  `_FIRST_PAUSE` seconds. Then one is sent as a trial. If the service is still out, the pause doubles, up to `_LONGEST_PAUSE`;
  if it answers, all requests are sent again.
- An error about one request (too long, filtered, malformed) does not count as a failure, nor as a success: a gateway before
  a dead model answers such requests, too. If it was the trial, the next request is the next trial.
- A trial that never ends, because its thread hangs or its loop died, blocks nothing: after another pause there is the next.

Any number of threads and event loops may use one breaker. It has no lock, which a fork could leave held for ever: the state is
one immutable value that is replaced as a whole. A race costs one failure that is not counted, or one trial too many. A fork,
and a copy that pickle makes, begin with a new state.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from ragspan.exceptions import JudgeError
from ragspan.judges.llm.errors import is_outage

_FAILURES = 5
_FIRST_PAUSE = 30.0  # seconds
_LONGEST_PAUSE = 300.0
_JITTER = 0.25
"""The largest share of a pause that chance takes off, so that the workers of a fleet do not all try at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _State:
    failures: int = 0
    """In a row."""
    pause: float = 0.0
    """The length of the pause, in seconds; 0 while requests are sent."""
    until: float = 0.0
    """The end of the pause on the clock."""
    epoch: int = 0
    """Counts openings and closings. The end of a request from an earlier epoch is ignored."""
    pid: int = field(default_factory=os.getpid)


class CircuitBreaker:
    """Watches the requests to one service.

    Args:
        clock: seconds that do not go backwards.
        chance: a number from 0 to below 1.
    """

    def __init__(
        self, *, clock: Callable[[], float] = time.monotonic, chance: Callable[[], float] = random.random
    ) -> None:
        self._clock = clock
        self._chance = chance
        self._state = _State()

    def __reduce__(self) -> tuple[type[CircuitBreaker], tuple[()]]:
        return CircuitBreaker, ()

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Around one request.

        A reply is a success, whatever it says. A `JudgeError` says itself whether it is an outage; other exceptions are
        classified. A cancellation is an outage: it is nearly always a time limit. (The end of an engine also cancels
        requests, which may cost another engine with the same judge a pause.)

        Raises:
            JudgeError: the service is out, and it is not yet time to try again.
        """
        epoch = self._admit()
        try:
            yield
        except BaseException as error:
            self._take_failure(epoch, is_out=_tells_of_an_outage(error))
            raise
        self._take_success(epoch)

    def _admit(self) -> int:
        state = self._current()
        if not state.pause:
            return state.epoch
        now = self._clock()
        if now < state.until:
            message = f"{state.failures} requests in a row failed; the next is sent in {state.until - now:.0f} s"
            raise JudgeError("judge_unavailable", message, outage=True)
        self._state = replace(state, until=now + state.pause)  # this request is the trial
        return state.epoch

    def _take_success(self, epoch: int) -> None:
        state = self._current()
        if epoch == state.epoch and (state.failures or state.pause):
            self._state = _State(epoch=epoch + bool(state.pause))

    def _take_failure(self, epoch: int, *, is_out: bool) -> None:
        state = self._current()
        if epoch != state.epoch:
            return
        if not is_out:
            if state.pause:
                self._state = replace(state, until=self._clock())
            return
        failures = state.failures + 1
        self._state = self._opened(state, failures) if failures >= _FAILURES else replace(state, failures=failures)

    def _opened(self, state: _State, failures: int) -> _State:
        pause = min(state.pause * 2 or _FIRST_PAUSE, _LONGEST_PAUSE)
        until = self._clock() + pause * (1 - _JITTER * self._chance())
        return _State(failures=failures, pause=pause, until=until, epoch=state.epoch + 1)

    def _current(self) -> _State:
        if self._state.pid != os.getpid():
            self._state = _State()
        return self._state


def _tells_of_an_outage(error: BaseException) -> bool:
    if isinstance(error, JudgeError):
        return error.outage
    if isinstance(error, asyncio.CancelledError):
        return True
    return isinstance(error, Exception) and is_outage(error)
