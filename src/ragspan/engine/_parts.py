"""What an engine consists of: all that a fork replaces."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ragspan.engine._backlog import Backlog
from ragspan.engine._emitter_group import EmitterGroup
from ragspan.engine._options import Options
from ragspan.engine._queue import BoundedQueue
from ragspan.engine._redaction import Redaction
from ragspan.engine._scoring import Scoring
from ragspan.engine._token_bucket import TokenBucket
from ragspan.engine._worker import Worker
from ragspan.engine.helper.computing import HelperComputing, ThreadComputing
from ragspan.engine.helper.forwarding import Forwarding
from ragspan.telemetry.self_metrics import SelfMetrics
from ragspan.throttled_log import ThrottledLog


@dataclass(frozen=True, kw_only=True, slots=True)
class Parts:
    """The parts of one engine in one process."""

    backlog: Backlog
    emission: EmitterGroup | Forwarding
    scoring: Scoring | Forwarding
    worker: Worker
    log: ThrottledLog


def assemble(options: Options, *, self_metrics: SelfMetrics, on_start: Callable[[], None]) -> Parts:
    """Parts that have done nothing yet. `on_start` is called before a thread is started."""
    log = ThrottledLog()
    items = BoundedQueue(max_count=options.queue_size, max_bytes=options.queue_bytes, drop=options.drop)
    rate = options.max_records_per_second
    backlog = Backlog(
        items,
        call_worker=lambda: worker.call(),  # noqa: PLW0108 - the two need each other
        admission=None if rate is None else TokenBucket(rate, max(1.0, rate)),
    )
    emission = EmitterGroup(options.emitters, account=backlog, log=log)
    forwards = options.export == "helper"
    # Where records go to the helper as a whole, what is scored here is scored because there is none.
    computing = HelperComputing(log) if options.judging == "helper" and not forwards else ThreadComputing()
    redaction = Redaction(options.redact, timeout=options.metric_timeout, account=backlog, log=log)
    here = Scoring(
        options,
        account=backlog,
        emission=emission,
        self_metrics=self_metrics,
        computing=computing,
        redaction=redaction,
        log=log,
    )
    forwarding = (
        Forwarding(options, account=backlog, scoring=here, emission=emission, redaction=redaction, log=log)
        if forwards
        else None
    )
    scoring = forwarding or here
    worker = Worker(
        backlog,
        scoring,
        concurrency=options.concurrency,
        name=f"{options.name}-worker",
        on_start=on_start,
        log=log,
    )
    return Parts(backlog=backlog, emission=forwarding or emission, scoring=scoring, worker=worker, log=log)
