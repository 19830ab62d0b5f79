"""Puts together what scores the records of an engine."""

from __future__ import annotations

from ragspan.engine._emitter_group import EmitterGroup
from ragspan.engine._options import Options
from ragspan.engine._record_queue import RecordQueue
from ragspan.engine._redaction import Redaction
from ragspan.engine._scoring import Scoring
from ragspan.engine.helper.computing import HelperComputing, ThreadComputing
from ragspan.engine.helper.forwarding import Forwarding
from ragspan.telemetry.self_metrics import SelfMetrics
from ragspan.throttled_log import ThrottledLog


def assemble(
    options: Options, *, queue: RecordQueue, self_metrics: SelfMetrics, log: ThrottledLog
) -> Scoring | Forwarding:
    """What scores the records of an engine, which has done nothing yet."""
    emission = EmitterGroup(options.emitters, account=queue, log=log)
    forwards = options.export == "helper"
    # Where records go to the helper as a whole, what is scored here is scored because there is none.
    computing = HelperComputing(log) if options.judging == "helper" and not forwards else ThreadComputing()
    redaction = Redaction(options.redact, timeout=options.metric_timeout, account=queue, log=log)
    here = Scoring(
        options,
        account=queue,
        emission=emission,
        self_metrics=self_metrics,
        computing=computing,
        redaction=redaction,
        log=log,
    )
    forwarding = (
        Forwarding(options, account=queue, scoring=here, emission=emission, redaction=redaction, log=log)
        if forwards
        else None
    )
    return forwarding or here
