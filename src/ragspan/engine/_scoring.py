"""What happens to one record: opened, chosen or not, scored, emitted, counted.

All of it runs in the worker's event loop. A record ends in the ledger exactly once, after its last emission.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from time import perf_counter

from ragspan.engine._boundary import attempt
from ragspan.engine._deadline import Deadline
from ragspan.engine._emitter_group import EmitterGroup, GroupHandle
from ragspan.engine._fallback import fallback_judge
from ragspan.engine._metric_judges import prepare_judges
from ragspan.engine._metric_run import MetricRun, MetricRunner, wait_for_runs
from ragspan.engine._options import Options
from ragspan.engine._record_queue import CompletionListener, Item
from ragspan.engine._redaction import Redaction
from ragspan.engine._sampling import Sampling
from ragspan.engine._spending import Spending
from ragspan.engine.helper.computing import Computing
from ragspan.judges.computing import computing_at
from ragspan.judges.overlap.languages import languages_of
from ragspan.judges.overlap.refusals import is_refusal
from ragspan.judges.session import JudgingSession
from ragspan.outcomes import MetricFailure, NotApplicable, Outcome, Score, ScoredRecord
from ragspan.records import RagRecord
from ragspan.telemetry.self_metrics import SelfMetrics
from ragspan.throttled_log import ThrottledLog

_WORKER_ERROR = MetricFailure(
    error_type="worker_error", message="the record was dropped while it was scored", outage=True
)


class Scoring:
    """Scores the records of an engine."""

    def __init__(
        self,
        options: Options,
        *,
        account: CompletionListener,
        emission: EmitterGroup,
        self_metrics: SelfMetrics,
        computing: Computing,
        redaction: Redaction,
        log: ThrottledLog,
    ) -> None:
        self._account = account
        self._computing = computing
        self._redaction = redaction
        self._emission = emission
        self._self_metrics = self_metrics
        self._log = log
        self._in_work: set[_Work] = set()
        self._is_closed = False
        self._timeout = options.metric_timeout
        self._wait = options.score_wait
        self._sampling = Sampling(
            rate=options.sample_rate,
            metric_rates=options.metric_sample_rates,
            score_unsampled=options.score_unsampled,
        )
        spending = Spending(options.budget) if options.budget is not None else None
        stand_in = fallback_judge(options.budget) if options.budget is not None else None
        if options.judging == "thread":
            prepare_judges(options.metrics, stand_in)
        self._runners = [
            MetricRunner(
                metric,
                concurrency=options.concurrency,
                observer=self,
                redaction=redaction,
                spending=spending,
                stand_in=stand_in,
            )
            for metric in options.metrics
        ]

    def prepare_for_exit(self) -> None:
        self._emission.prepare_for_exit()
        self._computing.prepare_for_exit()
        self._redaction.prepare_for_exit()
        for runner in self._runners:
            runner.prepare_for_exit()

    async def score(self, item: Item) -> None:
        """Bring one item to its end."""
        record = await self._redaction.record_of(item)
        if record is not None:
            await self.score_record(item, record)

    async def score_record(self, item: Item, record: RagRecord) -> None:
        """Bring an item to its end that has become a record."""
        work = _Work(
            item=item,
            record=record,
            handle=self._emission.start(record),
            refusal=self._is_refusal(record),
            language=self._language(record),
        )
        self._in_work.add(work)
        try:
            await self._judge(work)
        except (
            BaseException
        ):  # who awaited it, or a metric, cancelled this; where it was a metric, the worker counts it
            for run in work.runs:
                run.cancel(_WORKER_ERROR)
            self._emit_drop(work)
            raise
        finally:
            self._in_work.discard(work)
            if work.result is None:  # a shutdown dropped it
                work.handle.abandon()
        self._account.end_scored(item, work.result)

    def run_ended(self, run: MetricRun) -> None:
        """Count what a run took, unless the metric did not apply and spent nothing."""
        if self._is_closed:
            return  # it was cancelled, and is none of the metric's failures
        outcome = run.outcome
        if isinstance(outcome, MetricFailure) and outcome is not _WORKER_ERROR:
            self._account.record_error("metric")
            self._log.trouble(f"metric {run.name}", "metric %s failed with %.100s", run.name, outcome.error_type)
        if run.is_over_budget:
            self._log.trouble("budget", "the budget is spent: metric %s is not scored by its own judge", run.name)
        self._tell(self._self_metrics.ended, run.name, outcome)
        if isinstance(outcome, NotApplicable) and run.usage is None:
            return
        judge = outcome.judge if isinstance(outcome, Score) and not (outcome.fallback and run.usage) else None
        self._tell(self._self_metrics.judged, run.name, judge, run.seconds, run.usage)

    def close(self, deadline: Deadline) -> None:  # noqa: ARG002 - nothing here takes time
        """Nothing that ends from here on counts."""
        self._is_closed = True
        self._computing.close_for_good()
        self._redaction.close()
        for runner in self._runners:
            runner.close()

    def hang_up(self) -> None:
        """The worker's loop is about to be wound down: let go of what depends on it."""
        for work in [*self._in_work]:
            self._emit_drop(work)
        self._computing.hang_up()

    def let_go(self) -> None:
        """The worker's loop is gone."""
        self._computing.let_go()

    def flush(self, deadline: Deadline) -> bool:
        """Let the emitters send what they hold."""
        return self._emission.flush(deadline)

    def shutdown(self, deadline: Deadline) -> None:
        """Shut the emitters down."""
        self._emission.shutdown(deadline)

    async def _judge(self, work: _Work) -> None:
        """Run the chosen metrics at the same time; emit what is there after the wait, and once more what came later."""
        began = perf_counter()
        session = JudgingSession(record=work.record)
        desk = self._computing.desk_for(work.record)
        try:
            with computing_at(desk):
                work.runs += [self._start(runner, work, session) for runner in self._runners]
            await wait_for_runs(work.runs, min(self._wait, self._timeout))
            if self._timeout <= self._wait:
                _expire(work.runs, self._timeout)
            self._emit_ended(work)
            if work.runs:
                await wait_for_runs(work.runs, self._timeout - (perf_counter() - began))
                _expire(work.runs, self._timeout)
                self._emit_ended(work)
        finally:
            desk.close()

    def _start(self, runner: MetricRunner, work: _Work, session: JudgingSession) -> MetricRun:
        is_chosen = not work.item.sample or self._sampling.chooses(runner.name, work.record, work.handle.span)
        return runner.start(work.record, session) if is_chosen else runner.pass_over(work.record, "not_sampled")

    def _emit_ended(self, work: _Work) -> None:
        """Emit what has ended since the last time."""
        if not self._account.has_in_work(work.item):
            return  # abandoned by a shutdown, after which nothing is emitted
        ended = {run.name: run.outcome for run in work.runs if run.outcome is not None}
        self._emit(work, ended, durations={run.name: run.seconds for run in work.runs if run.task and run.has_ended})
        work.runs = [run for run in work.runs if run.outcome is None]

    def _emit_drop(self, work: _Work) -> None:
        """Tell the emitters that this record gets no more outcomes: what they opened for it would stay open."""
        if work in self._in_work and not self._is_closed:  # else they were told, or their own shutdown ends it
            self._in_work.discard(work)
            self._emit(work, {run.name: _outcome_of_dropped(run) for run in work.runs}, durations={})

    def _emit(self, work: _Work, outcomes: Mapping[str, Outcome], *, durations: Mapping[str, float]) -> None:
        before = work.result
        scored = ScoredRecord(
            record=work.record,
            outcomes=outcomes,
            late=before is not None,
            span=work.handle.span,
            retrieval_spans=work.handle.retrieval_spans,
            refusal=work.refusal,
            language=work.language,
            durations=durations,
        )
        if before is None:
            work.handle.finish(scored)
        else:
            work.handle.late(scored)
            scored = replace(
                before,
                outcomes={**before.outcomes, **outcomes},
                durations={**before.durations, **durations},
            )
        work.result = scored

    def _tell(self, instrument: Callable[..., None], *about: object) -> None:
        _, error = attempt(instrument, *about)
        if error is not None:
            self.went_wrong("self_metrics", error)

    def _is_refusal(self, record: RagRecord) -> bool:
        if record.response is None:
            return False
        refusal, error = attempt(is_refusal, record.response)
        if error is not None:
            self.went_wrong("refusal", error)
        return refusal is True

    def _language(self, record: RagRecord) -> str | None:
        if not (record.response or "").strip():
            return None
        contexts = [context.text for context in record.contexts or ()]
        found, error = attempt(languages_of, record.response, contexts, record.question or "")
        if error is not None:
            self.went_wrong("language", error)
        return found.response.code if found is not None else None

    def went_wrong(self, place: str, error: BaseException) -> None:
        """Count something that loses no record, by its place."""
        self._account.record_error(place)
        self._log.trouble(place, "%s failed with %s", place, type(error).__name__)


@dataclass(kw_only=True, slots=True, eq=False)
class _Work:
    """A record that is being scored."""

    item: Item
    record: RagRecord
    handle: GroupHandle
    refusal: bool
    language: str | None
    runs: list[MetricRun] = field(default_factory=list)
    """Those whose outcomes are not emitted yet."""
    result: ScoredRecord | None = None
    """All that has been emitted; what follows comes late."""


def _outcome_of_dropped(run: MetricRun) -> Outcome:
    """Its own, unless it failed: that may be because it was cancelled with the record."""
    if isinstance(run.outcome, (Score, NotApplicable)):
        return run.outcome
    return _WORKER_ERROR


def _expire(runs: Iterable[MetricRun], timeout: float) -> None:
    for run in runs:
        run.expire(timeout)
