"""What an engine consists of: all that a fork replaces."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ragspan.engine._backlog import Backlog
from ragspan.engine._emission import Emission
from ragspan.engine._options import Options
from ragspan.engine._queue import BoundedQueue
from ragspan.engine._scoring import Scoring
from ragspan.engine._worker import Worker
from ragspan.telemetry.self_metrics import SelfMetrics
from ragspan.throttled_log import ThrottledLog


@dataclass(frozen=True, kw_only=True, slots=True)
class Parts:
    """The parts of one engine in one process."""

    backlog: Backlog
    emission: Emission
    scoring: Scoring
    worker: Worker
    log: ThrottledLog


def assemble(options: Options, *, self_metrics: SelfMetrics, on_start: Callable[[], None]) -> Parts:
    """Parts that have done nothing yet. `on_start` is called before a thread is started."""
    log = ThrottledLog()
    items = BoundedQueue(max_count=options.queue_size, max_bytes=options.queue_bytes, drop=options.drop)
    backlog = Backlog(items, call_worker=lambda: worker.call())  # noqa: PLW0108 - the two need each other
    emission = Emission(options.emitters, backlog=backlog, log=log)
    scoring = Scoring(options, backlog=backlog, emission=emission, self_metrics=self_metrics, log=log)
    worker = Worker(
        backlog,
        scoring,
        concurrency=options.concurrency,
        name=f"{options.name}-worker",
        on_start=on_start,
        log=log,
    )
    return Parts(backlog=backlog, emission=emission, scoring=scoring, worker=worker, log=log)
