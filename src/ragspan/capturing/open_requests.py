"""The requests of one sink that are open.

Every method returns in microseconds, takes no lock, does no I/O, makes no span and attaches no context: a finaliser that ends a
dropped stream may run at any point, in any thread. One request gives one capture, and is forgotten when it is over, even if its
inner runs have not ended: cancelled runs get no end event.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from itertools import repeat
from time import time_ns
from typing import Final, Generic, NamedTuple, TypeAlias, TypeVar

from opentelemetry.context import get_current

from ragspan.capturing.answer import Answer, enclosing_answer
from ragspan.capturing.log import Fold, Grow, NestedLog, RequestLog, RunKey
from ragspan.records import RecordSink
from ragspan.telemetry.otel_context import current_anchor, is_suppressed
from ragspan.throttled_log import ThrottledLog

MAX_RUNS: Final = 50_000  # a request with more runs is given up
_MAX_OPEN = 10_000  # requests that may be open at the same time; the oldest is given up beyond
_MAX_NS = 4 * 3600 * 10**9  # after which a request is given up
_NS_BETWEEN_LOOKS = 60 * 10**9

LiveRun = TypeVar("LiveRun")
"""What an integration wants to know of a live run: the log, or the log and a run around it."""


class OuterRun(NamedTuple):
    """A run of another integration's request, in which something happens."""

    log: RequestLog
    run: RunKey


Finder: TypeAlias = Callable[[RecordSink], OuterRun | None]
"""Finds the live run that the caller is in, of a request for this sink."""

_finders: list[Finder] = []


def add_request_finder(find: Finder) -> None:
    """Have the requests of other integrations ask this one where they are."""
    if find not in _finders:
        _finders.append(find)


class EndedRuns:
    """Remembers the runs of requests that ended lately: what they still do in the background is not a new request.

    It knows the last `_RUNS` runs, but for those that another thread adds while the sets change, and of earlier ones about as
    many again at most.
    """

    _RUNS = 1 << 14

    def __init__(self) -> None:
        self._young: set[RunKey] = set()
        self._old: set[RunKey] = set()

    def add_all(self, keys: Iterable[RunKey]) -> None:
        young = self._young
        young.update(keys)
        if len(young) > self._RUNS:
            self._old, self._young = young, set()

    def inherit(self, key: RunKey, parent: RunKey) -> bool:
        """Whether the run around this one is known here; then this one is, too."""
        is_known = parent in self
        if is_known:
            self.add_all((key,))
        return is_known

    def __contains__(self, key: RunKey) -> bool:
        return key in self._young or key in self._old


_ended = EndedRuns()  # ids are unique in a process, so one serves all


class OpenRequests(Generic[LiveRun]):
    """Requests from their first event to their last.

    Args:
        sink: gets a capture of each request.
        fold: makes the record of a request's log.
        grow: makes the tree of what happened inside another framework's request.
        on_end: is called with a log that has just ended, while its documents are still alive.
    """

    def __init__(
        self,
        sink: RecordSink,
        fold: Fold,
        grow: Grow | None = None,
        *,
        on_end: Callable[[RequestLog], None] | None = None,
    ) -> None:
        self.sink = sink
        self.live: dict[RunKey, LiveRun] = {}  # the runs that have not ended, by their keys
        self.ended = _ended
        self._fold = fold
        self._grow = grow
        self._log = ThrottledLog()
        self._on_end = on_end
        self._open: dict[int, RequestLog] = {}  # by identity, in order of their start
        self._next_look_ns = 0

    # Starts

    def within(self) -> OuterRun | Answer | None:
        """What the caller is in, the nearer of both: a run of another framework's request, or a `ragspan.capture` block."""
        answer = enclosing_answer()
        for find in _finders if len(_finders) > 1 else ():  # else no other integration is there
            found = find(self.sink)
            if found is not None and not found.log.over and (found.log.grouped or answer is None):
                return found
        return answer

    def begin(self, run: RunKey, within: OuterRun | Answer | None) -> RequestLog | None:
        """The log of a run that nothing followed is around: a new one, or one of what the caller is within.

        None where instrumentation is suppressed, as it is for what a judge asks.
        """
        context = get_current()
        if context and is_suppressed(context):
            return None
        if within is not None:
            if isinstance(within, OuterRun):
                return self._begin_inside(within, run)
            return within.part(self, lambda: self._new_log(grouped=True), self._end)
        log = self._new_log()
        if context:
            log.anchor = current_anchor(context)
        return log

    def _begin_inside(self, outer: OuterRun, run: RunKey) -> RequestLog:
        """The log of what is noted inside of another framework's request, where this run begins; it ends with that request."""
        inside = outer.log.nested
        inner = inside.get(id(self))
        if inner is None:
            made = NestedLog(self._new_log(grouped=True), self._end, {})
            inner = inside.setdefault(id(self), made)
            if inner is not made:  # another thread was first
                self._end(made.log)
        inner.around[run] = outer.run
        return inner.log

    def follow(self, log: RequestLog, key: RunKey, run: LiveRun) -> None:
        keys = log.keys
        keys.append(key)
        self.live[key] = run
        if log.over or len(keys) > MAX_RUNS:
            self.unfollow(log, key)

    def unfollow(self, log: RequestLog, key: RunKey) -> None:
        """A run is live of a request that ended in another thread meanwhile, or has too many runs."""
        if log.over:
            self.live.pop(key, None)
        else:
            self.give_up(log)

    def _new_log(self, *, grouped: bool = False) -> RequestLog:
        """The log of a request that begins; others that should have ended are given up."""
        while len(self._open) >= _MAX_OPEN:
            self.give_up(next(iter(self._open.values())))
        now = time_ns()
        if now >= self._next_look_ns:
            self._next_look_ns = now + _NS_BETWEEN_LOOKS
            for old in [old for old in list(self._open.values()) if now - old.started_ns > _MAX_NS]:
                self.give_up(old)
        log = RequestLog(self._fold, self._grow, grouped=grouped)
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
        self._log.report(kind, "a callback of ragspan failed with %s", kind)
        count_error = getattr(self.sink, "count_error", None)
        if count_error is not None:
            count_error("callback")

    def _end(self, log: RequestLog) -> bool:
        """End a request; False if it has ended."""
        if self._open.pop(id(log), None) is None:
            return False
        log.ended_ns, log.over, log.span_finder = time_ns(), True, None
        deque(map(self.live.pop, log.keys, repeat(None)), maxlen=0)  # a loop takes twice as long
        self.ended.add_all(log.keys)
        for inner in list(log.nested.values()):
            inner.end(inner.log)
        if self._on_end is not None:
            self._on_end(log)
        log.release()
        return True
