"""What a sink consists of: all that a fork replaces."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ragspan.engine._backlog import Backlog
from ragspan.engine._queue import BoundedQueue
from ragspan.engine._worker import Worker
from ragspan.throttled_log import ThrottledLog
from ragspan_nats.sink._publishing import Publishing
from ragspan_nats.sink.options import SinkOptions

_IN_FLIGHT = 64
"""Records that are published and not acknowledged. A broker that takes five milliseconds gets 12,000 a second so."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Parts:
    """The parts of one sink in one process."""

    backlog: Backlog
    scoring: Publishing
    worker: Worker
    log: ThrottledLog

    @property
    def emission(self) -> Publishing:
        """What is shut down last."""
        return self.scoring


def assemble(options: SinkOptions, *, on_start: Callable[[], None]) -> Parts:
    """Parts that have done nothing yet. `on_start` is called before a thread is started."""
    log = ThrottledLog()
    items = BoundedQueue(max_count=options.queue_size, max_bytes=options.queue_bytes, drop=options.drop)
    backlog = Backlog(items, call_worker=lambda: worker.call())  # noqa: PLW0108 - the two need each other
    publishing = Publishing(options, account=backlog, log=log)
    worker = Worker(
        backlog, publishing, concurrency=_IN_FLIGHT, name=f"{options.name}-publisher", on_start=on_start, log=log
    )
    return Parts(backlog=backlog, scoring=publishing, worker=worker, log=log)
