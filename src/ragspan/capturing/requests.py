"""The open requests of a framework, for one sink.

Guarantees:

- Every method returns in microseconds, takes no lock, does no I/O, makes no span and attaches no context. A finaliser that
  ends a dropped stream may run at any point, in any thread.
- A request is forgotten when it is over, even if its inner runs have not ended: cancelled runs get no end event. A request
  that never ends is submitted as abandoned after a while, or when too many are open.
- One request gives one capture.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from opentelemetry.context import get_current

from ragspan.capturing.answer import enclosing_answer
from ragspan.capturing.log import Fold, RequestLog, RunKey
from ragspan.records import RecordSink
from ragspan.telemetry.otel_context import current_anchor, is_suppressed
from ragspan.throttled_log import ThrottledLog

_MAX_RUNS = 50_000  # of one request
_OTHER_BITS = 32  # of a hash, for its second place

Place = TypeVar("Place")
"""What an integration wants to know of a live run: the log, or the log and a run around it."""


class EndedRuns:
    """Remembers the runs of requests that ended lately: what they still do in the background is no new request.

    A table of fixed size, in which a new key takes the places of older ones. Each key has two places, by different bits of
    its hash, which are random in ids. So about `_PLACES` runs are known, and one of them hardly ever hides another.
    """

    _PLACES = 1 << 15

    def __init__(self) -> None:
        self._hashes = array("q", bytes(8 * 2 * self._PLACES))

    def add_all(self, keys: Iterable[RunKey]) -> None:
        table, last_bits = self._hashes, self._PLACES - 1
        for number in map(hash, keys):
            table[number & last_bits] = table[~(number >> _OTHER_BITS & last_bits)] = number

    def inherit(self, key: RunKey, parent: RunKey) -> bool:
        """Whether the run around this one is known here; then this one is, too."""
        if parent not in self:
            return False
        self.add_all((key,))
        return True

    def __contains__(self, key: RunKey) -> bool:
        table, last_bits, number = self._hashes, self._PLACES - 1, hash(key)
        return number in (table[number & last_bits], table[~(number >> _OTHER_BITS & last_bits)])


_ended = EndedRuns()  # ids are unique in a process, so one table serves all


def _ignore(_: RequestLog) -> None:
    pass


class OpenRequests(Generic[Place]):
    """Requests from their first event to their last.

    Args:
        sink: gets a capture of each request.
        fold: makes the record of a request's log.
        on_end: is called with a log that has just ended, while its documents are still alive.
        max_open: requests that may be open at the same time; the oldest is given up beyond.
        max_seconds: after which a request in which nothing happens is given up.
        sweep_seconds: at least between two looks for such requests.
    """

    def __init__(
        self,
        sink: RecordSink,
        fold: Fold,
        *,
        on_end: Callable[[RequestLog], None] = _ignore,
        max_open: int = 10_000,
        max_seconds: float = 3600.0,
        sweep_seconds: float = 60.0,
    ) -> None:
        self.sink = sink
        self.live: dict[RunKey, Place] = {}
        """The runs that have not ended, by their keys."""
        self.ended = _ended
        self._fold = fold
        self._log = ThrottledLog()
        self._on_end = on_end
        self._open: dict[int, RequestLog] = {}  # by identity, in order of their start
        self._max_open = max_open
        self._max_ns = int(max_seconds * 1e9)
        self._sweep_seconds = sweep_seconds
        self._next_sweep = time.monotonic() + sweep_seconds

    # Starts

    def begin(self) -> RequestLog | None:
        """The log of a run that nothing followed is around: a new one, or that of the `ragspan.capture` block.

        None where instrumentation is suppressed, as it is for what a judge asks.
        """
        context = get_current()
        if context and is_suppressed(context):
            return None
        answer = enclosing_answer()
        if answer is not None:
            return answer.part(self, lambda: self._new_log(grouped=True), self._end)
        log = self._new_log()
        if context:
            log.anchor = current_anchor(context)
        return log

    def follow(self, log: RequestLog, key: RunKey, place: Place) -> None:
        """Note that a run is live."""
        log.keys.append(key)
        self.live[key] = place
        if log.over:  # it ended in another thread meanwhile
            self.live.pop(key, None)
        elif len(log.keys) > _MAX_RUNS:
            self.give_up(log)

    def _new_log(self, *, grouped: bool = False) -> RequestLog:
        """The log of a request that begins; others that should have ended are given up."""
        while len(self._open) >= self._max_open:
            self.give_up(next(iter(self._open.values())))
        now = time.monotonic()
        if now >= self._next_sweep:
            self._next_sweep = now + self._sweep_seconds
            too_old = time.time_ns() - self._max_ns
            for each in [each for each in list(self._open.values()) if each.last_event_ns < too_old]:
                self.give_up(each)
        log = RequestLog(self._fold, grouped=grouped)
        self._open[id(log)] = log
        return log

    # Ends

    def finish(self, log: RequestLog) -> None:
        """Submit a request that is over, unless it was submitted, or its block does so. Never raises, whatever a sink does."""
        try:
            if not log.grouped and self._end(log):
                self.sink.submit(log)
        except Exception as problem:  # noqa: BLE001
            self.report(problem)

    def give_up(self, log: RequestLog) -> None:
        """End a request of which nothing more is expected."""
        log.abandoned = True
        if log.grouped:
            self._end(log)  # the block submits it
        else:
            self.finish(log)

    def discard(self) -> None:
        """Forget everything that is open, and submit nothing."""
        for log in list(self._open.values()):
            self._end(log)
        self.live.clear()

    def report(self, error: BaseException) -> None:
        """Something went wrong in a callback: it is logged, by its type, and the sink counts it where it can."""
        kind = type(error).__name__
        self._log.trouble(kind, "a callback of ragspan failed with %s", kind)
        count_error = getattr(self.sink, "count_error", None)
        if count_error is not None:
            count_error("callback")

    def _end(self, log: RequestLog) -> bool:
        """End a request; False if it has ended."""
        if self._open.pop(id(log), None) is None:
            return False
        log.end()
        live = self.live
        for key in log.keys:
            live.pop(key, None)
        self.ended.add_all(log.keys)
        self._on_end(log)
        log.release()
        return True
