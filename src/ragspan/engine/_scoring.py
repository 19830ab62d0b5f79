"""What happens to one record: opened, chosen or not, scored, emitted, counted.

All of it runs in the worker's event loop. A record ends in the ledger exactly once, after its last emission.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter

from ragspan.engine._backlog import Backlog
from ragspan.engine._boundary import attempt
from ragspan.engine._emission import Emission
from ragspan.engine._metric_run import MetricRun, MetricRunner, wait_for_runs
from ragspan.engine._options import Options
from ragspan.engine._queue import Item
from ragspan.engine._sampling import Sampling
from ragspan.judges.overlap.refusals import is_refusal
from ragspan.outcomes import MetricFailure, NotApplicable, Outcome, Score, ScoredRecord
from ragspan.records import RagRecord, SpanAnchor
from ragspan.telemetry.self_metrics import SelfMetrics
from ragspan.throttled_log import ThrottledLog


class Scoring:
    """Scores the records of an engine."""

    def __init__(
        self, options: Options, *, backlog: Backlog, emission: Emission, self_metrics: SelfMetrics, log: ThrottledLog
    ) -> None:
        self._backlog = backlog
        self._emission = emission
        self._self_metrics = self_metrics
        self._log = log
        self._is_closed = False
        self._timeout = options.metric_timeout
        self._wait = options.score_wait
        self._sampling = Sampling(rate=options.sample_rate, score_unsampled=options.score_unsampled)
        self._runners = [
            MetricRunner(metric, concurrency=options.concurrency, observer=self) for metric in options.metrics
        ]

    def prepare_for_exit(self) -> None:
        self._emission.prepare_for_exit()
        for runner in self._runners:
            runner.prepare_for_exit()

    async def score(self, item: Item) -> None:
        """Bring one item to its end."""
        record = self._record_of(item)
        if record is None:
            return
        span = self._emission.open(record)
        work = _Work(item=item, record=record, span=span, refusal=self._is_refusal(record))
        if self._sampling.chooses(record, span):
            await self._judge(work)
        else:
            reasons = {runner.name: self._reason_unscored(runner, record) for runner in self._runners}
            self._emit(work, reasons, durations={})
        self._backlog.end_scored(item)

    def run_ended(self, run: MetricRun) -> None:
        """Count what a run took, unless the metric did not apply and spent nothing."""
        if self._is_closed:
            return  # it was cancelled, and is none of the metric's failures
        outcome = run.outcome
        if isinstance(outcome, MetricFailure):
            self._backlog.went_wrong("metric")
            self._log.trouble(f"metric {run.name}", "metric %s failed with %.100s", run.name, outcome.error_type)
        if isinstance(outcome, NotApplicable) and run.usage is None:
            return
        judge = outcome.judge if isinstance(outcome, Score) else None
        _, error = attempt(self._self_metrics.judged, run.name, judge, run.seconds, run.usage)
        if error is not None:
            self._went_wrong("self_metrics", error)

    def close(self) -> None:
        """Nothing that ends from here on counts."""
        self._is_closed = True
        for runner in self._runners:
            runner.close()

    def _record_of(self, item: Item) -> RagRecord | None:
        """The record; None if the item has ended without one."""
        record, error = attempt(item.capture.to_record)
        if error is None and record is None:
            self._backlog.end_with_nothing_to_score(item)
        elif isinstance(record, RagRecord):
            return record if self._backlog.has_in_work(item) else None
        else:
            kind = type(record if error is None else error).__name__
            self._backlog.end_dropped(item, "capture_error")
            self._log.trouble("capture_error", "a capture could not be made a record: %s", kind)
        return None

    async def _judge(self, work: _Work) -> None:
        """Run all metrics at the same time; emit what is there when the wait is over, and once more what came later."""
        began = perf_counter()
        runs = [runner.start(work.record) for runner in self._runners]
        await wait_for_runs(runs, min(self._wait, self._timeout))
        if self._timeout <= self._wait:
            _expire(runs, self._timeout)
        late = [run for run in runs if run.outcome is None]
        self._emit_runs(work, [run for run in runs if run.outcome is not None])
        if late:
            await wait_for_runs(late, self._timeout - (perf_counter() - began))
            _expire(late, self._timeout)
            self._emit_runs(work, late, late=True)

    def _emit_runs(self, work: _Work, runs: Sequence[MetricRun], *, late: bool = False) -> None:
        outcomes = {run.name: run.outcome for run in runs if run.outcome is not None}
        self._emit(work, outcomes, durations={run.name: run.seconds for run in runs}, late=late)

    def _emit(
        self, work: _Work, outcomes: Mapping[str, Outcome], *, durations: Mapping[str, float], late: bool = False
    ) -> None:
        if not self._backlog.has_in_work(work.item):
            return  # abandoned by a shutdown, after which nothing is emitted
        self._emission.emit(
            ScoredRecord(
                record=work.record,
                outcomes=outcomes,
                late=late,
                span=work.span,
                refusal=work.refusal,
                durations=durations,
            )
        )

    def _reason_unscored(self, runner: MetricRunner, record: RagRecord) -> NotApplicable:
        """The metric's own reason comes first: it would not have applied in any case."""
        reason, error = attempt(runner.screen, record)
        if error is not None:
            self._went_wrong("screen", error)
        return reason if isinstance(reason, NotApplicable) else NotApplicable(reason="not_sampled")

    def _is_refusal(self, record: RagRecord) -> bool:
        if record.response is None:
            return False
        refusal, error = attempt(is_refusal, record.response)
        if error is not None:
            self._went_wrong("refusal", error)
        return refusal is True

    def _went_wrong(self, place: str, error: BaseException) -> None:
        self._backlog.went_wrong(place)
        self._log.trouble(place, "%s failed with %s", place, type(error).__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Work:
    """A record that is being scored."""

    item: Item
    record: RagRecord
    span: SpanAnchor | None
    refusal: bool


def _expire(runs: Sequence[MetricRun], timeout: float) -> None:
    for run in runs:
        run.expire(timeout)
