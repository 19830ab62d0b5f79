"""The end of an engine: once, whoever asks for it and how often.

Guarantees:
- It takes no longer than its timeout (and a grace of a tenth of a second), whatever hangs.
- The time is shared out: most of it for scoring what is left, the last of it for the emitters to send what they hold.
- A later call returns the first one's report. A call that comes while another thread is at it waits for that report; one
  from a signal handler that interrupted it cannot wait, and says what is left at that moment.
- A call from a signal handler that interrupted a step of the backlog's, which the worker waits for, cannot wait either: it
  takes nothing any more, says what is left at that moment, and the shutdown follows as soon as the handler has returned.
"""

from __future__ import annotations

import threading
from typing import Protocol

from ragspan.engine._backlog import Backlog
from ragspan.engine._deadline import Deadline
from ragspan.engine._worker import Worker
from ragspan.engine.stats import ShutdownReport
from ragspan.throttled_log import ThrottledLog

_GRACE = 0.04  # seconds for the worker to end, even if no time is left: emitters should not be shut down under it


class _Closes(Protocol):
    def close(self, deadline: Deadline) -> None: ...


class _ShutsDown(Protocol):
    def shutdown(self, deadline: Deadline) -> None: ...


class _Parts(Protocol):
    """What is shut down: an engine, or a sink that is built like one."""

    @property
    def backlog(self) -> Backlog: ...
    @property
    def scoring(self) -> _Closes: ...
    @property
    def worker(self) -> Worker: ...
    @property
    def emission(self) -> _ShutsDown: ...
    @property
    def log(self) -> ThrottledLog: ...


class Shutdown:
    """Shuts the parts of an engine down."""

    def __init__(self, parts: _Parts) -> None:
        self._parts = parts
        self._mutex = threading.RLock()  # the one who may not wait for himself has to get in, to see that
        self._is_under_way = False
        self._report: ShutdownReport | None = None

    @property
    def is_done(self) -> bool:
        return self._report is not None

    def run(self, timeout: float) -> ShutdownReport:
        deadline = Deadline(timeout)
        if self._report is not None:
            return self._report
        backlog = self._parts.backlog
        if backlog.is_held_here:
            backlog.close("shutdown")
            backlog.put_off(lambda: self.run(timeout))
            return self._so_far(deadline)
        if not self._mutex.acquire(timeout=deadline.remaining):
            return self._so_far(deadline)
        try:
            if self._is_under_way:
                return self._so_far(deadline)
            self._is_under_way = True
            try:
                if self._report is None:
                    self._report = self._end(deadline)
            finally:
                self._is_under_way = False
            return self._report
        finally:
            self._mutex.release()

    def _end(self, deadline: Deadline) -> ShutdownReport:
        parts = self._parts
        finished_before = parts.backlog.finished
        parts.backlog.close("shutdown")
        if not parts.worker.is_current_thread:
            parts.backlog.wait_until_out(deadline.less_reserve())
        abandoned = parts.backlog.abandon()
        parts.scoring.close(deadline)
        parts.worker.stop(Deadline(max(deadline.remaining / 2, _GRACE)))
        parts.emission.shutdown(deadline)
        if abandoned:
            parts.log.trouble("shutdown", "%d records were abandoned: the time for their scores was up", abandoned)
        finished = parts.backlog.finished - finished_before
        return ShutdownReport(finished=finished, abandoned=abandoned, seconds=deadline.elapsed)

    def _so_far(self, deadline: Deadline) -> ShutdownReport:
        stats = self._parts.backlog.stats()
        return ShutdownReport(finished=0, abandoned=stats.queued + stats.in_flight, seconds=deadline.elapsed)
