"""Between the engine and its emitters: tells them apart by delivery, and keeps from them what is to be scored again.

All of it but `flush` and `shutdown` runs in the engine's worker, in the order: the spans' emitter, others, `Completion`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ragspan.outcomes import MetricFailure, Score, ScoredRecord
from ragspan.records import RagRecord
from ragspan.telemetry import OTelEmitter
from ragspan.telemetry.base import AnswerHandle, EmitHandle, Emitter, ScoreEmitter
from ragspan_nats.worker.delivery import ACKNOWLEDGE, Delivery, Verdict
from ragspan_nats.worker.in_hand import InHand
from ragspan_nats.worker.options import WorkerOptions
from ragspan_nats.worker.spans import Current

_TIMEOUT = "timeout"  # how the engine names the failure of a metric that took too long


def verdict_on(scored: ScoredRecord, number: int, options: WorkerOptions) -> Verdict:
    """What is to become of a record with these outcomes.

    Where a judge's service failed, or kept all metrics waiting until their time was over, the record comes again later. With
    its last delivery the scores that are there are better than none; without any, it is put aside.

    Args:
        scored: the record and its outcomes.
        number: which delivery of it this is, from 1.
        options: how often and how soon it may come again.
    """
    failures = [outcome for outcome in scored.outcomes.values() if isinstance(outcome, MetricFailure)]
    has_scores = any(isinstance(outcome, Score) for outcome in scored.outcomes.values())
    # One metric may take too long because of what it has to do; where none came to an end, it is the service that hangs.
    outages = [one.error_type for one in failures if one.outage or (one.error_type == _TIMEOUT and not has_scores)]
    if not outages:
        return ACKNOWLEDGE
    detail = f"{len(outages)} of {len(scored.outcomes)} metrics failed: {', '.join(sorted(set(outages)))}"[:200]
    if number < options.max_deliveries:
        return Verdict(ending="give_back", reason="judge_outage", detail=detail, delay=options.back_off(number))
    if has_scores:
        return ACKNOWLEDGE
    return Verdict(ending="put_aside", reason="judge_outage", detail=detail)


class AnswerSpans:
    """The emitter of spans, told whose they are.

    Args:
        emitter: makes the spans.
        in_hand: where a record's delivery is found.
        current: told of it.
        options: for the verdict.
    """

    def __init__(self, emitter: OTelEmitter, in_hand: InHand, current: Current, options: WorkerOptions) -> None:
        self._emitter = emitter
        self._in_hand = in_hand
        self._current = current
        self._options = options

    @property
    def score_wait(self) -> float:
        return self._emitter.score_wait

    def start(self, record: RagRecord) -> AnswerHandle:
        with self._current.at(self._in_hand.of(record), "open"):
            handle = self._emitter.start(record)
        return EmitHandle(partial(self._finish, handle), handle.span, handle.retrieval_spans)

    def _finish(self, handle: AnswerHandle, scored: ScoredRecord) -> None:
        delivery = self._in_hand.of(scored.record)
        if delivery is None:  # it was given back in the meantime
            handle.abandon()
            return
        verdict = verdict_on(scored, delivery.arrival.number, self._options)
        if verdict.ending == "acknowledge":
            with self._current.at(delivery, "emit"):
                handle.finish(scored)
            delivery.scored = scored
        else:
            handle.abandon()
        delivery.verdict = verdict  # after the spans: where they could not be made, there is none

    def flush(self, timeout: float) -> bool:
        return self._emitter.flush(timeout)

    def shutdown(self, timeout: float) -> None:
        self._emitter.shutdown(timeout)


class OtherEmitter:
    """An emitter besides that of spans, which gets only what is exported. `NativeScores` is for those that are a `ScoreWriter`.

    Args:
        emitter: the other one.
        in_hand: where a record's delivery is found.
    """

    def __init__(self, emitter: Emitter, in_hand: InHand) -> None:
        self._emitter = emitter
        self._in_hand = in_hand

    @property
    def score_wait(self) -> float:
        return 0.0  # the worker always waits for all scores

    def start(self, record: RagRecord) -> AnswerHandle:
        handle = self._emitter.start(record)
        return EmitHandle(partial(self._finish, handle), handle.span)

    def _finish(self, handle: AnswerHandle, scored: ScoredRecord) -> None:
        delivery = self._in_hand.of(scored.record)
        if delivery is not None and delivery.verdict is ACKNOWLEDGE:
            handle.finish(scored)
        else:
            handle.abandon()

    def flush(self, timeout: float) -> bool:
        return self._emitter.flush(timeout)

    def shutdown(self, timeout: float) -> None:
        self._emitter.shutdown(timeout)


class Completion(ScoreEmitter):
    """The last emitter: a record that comes here has been through all others.

    Args:
        in_hand: where a record's delivery is found.
        on_scored: takes the delivery on; called in the engine's worker.
    """

    score_wait = 0.0

    def __init__(self, in_hand: InHand, on_scored: Callable[[Delivery], None]) -> None:
        self._in_hand = in_hand
        self._on_scored = on_scored

    def emit(self, scored: ScoredRecord) -> None:
        delivery = self._in_hand.of(scored.record)
        if delivery is not None:
            self._on_scored(delivery)
