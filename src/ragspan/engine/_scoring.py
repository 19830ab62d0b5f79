"""What happens to one record: opened, chosen or not, scored, emitted, counted.

All of it runs in the worker's event loop. A record ends in the ledger exactly once, after its last emission.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import TypeAlias

from ragspan.engine._emitter_group import EmitterGroup, GroupHandle
from ragspan.engine._judges import make_fallback_judge, prepare_judges
from ragspan.engine._metric_run import MetricRunner, MetricTask, wait_for_runs
from ragspan.engine._options import Options
from ragspan.engine._record_queue import CompletionListener, Item
from ragspan.engine._redaction import Redaction
from ragspan.engine._threads import DaemonThreads, Deadline, call_guarded
from ragspan.engine.budget import BudgetTracker
from ragspan.engine.helper.scoring import HelperScoring
from ragspan.judges.overlap.languages import languages_of
from ragspan.judges.overlap.refusals import is_refusal
from ragspan.judges.session import JudgingSession
from ragspan.outcomes import MetricFailure, NotApplicable, Outcome, Score, ScoredRecord
from ragspan.records import RagRecord, SpanAnchor
from ragspan.telemetry.self_metrics import SelfMetrics
from ragspan.throttled_log import ThrottledLog

About: TypeAlias = tuple[bool, str | None]
"""Whether a response is a refusal, and its language, as an ISO 639-1 code."""

_WORKER_ERROR = MetricFailure(
    error_type="worker_error", message="the record was dropped while it was scored", outage=True
)
_HASH_BYTES = 6  # a float holds them exactly, so the number stays below 1
_KEY = b"ragspan.sampling"


@dataclass(frozen=True, kw_only=True, slots=True)
class Sampling:
    """A share of the answers, chosen by trace id, so that a metric scores all answers of a trace or none.

    All metrics go by the same draw: what a metric with a lower share scores, those with a higher one score as well.
    """

    rate: float = 1.0
    """0..1."""
    metric_rates: Mapping[str, float] = field(default_factory=dict)
    """0..1, of metrics by name that have a share of their own in place of `rate`."""
    score_unsampled: bool = False
    """Score answers whose trace is not sampled, too."""

    def chooses(self, metric: str, record: RagRecord, span: SpanAnchor | None) -> bool:
        """Whether this metric is to score it.

        `span` is the answer's span, if an emitter has one; else the record's parent decides.
        """
        trace = span or record.parent
        if trace is not None and not trace.sampled and not self.score_unsampled:
            return False
        return _draw(f"{trace.trace_id:032x}" if trace is not None else record.record_id) < self.metric_rates.get(
            metric, self.rate
        )


def _draw(identity: str) -> float:
    """A number from 0 to below 1, always the same for the same identity.

    A hash with a key of its own, not the bits of the trace id: samplers of traces compare those to their rate. Where
    one of them keeps a tenth of the traces, a tenth taken by the same bits would be all that is left.
    """
    digest = hashlib.blake2b(identity.encode(errors="surrogatepass"), digest_size=_HASH_BYTES, key=_KEY).digest()
    return int.from_bytes(digest, "big") / (1 << 8 * _HASH_BYTES)


class RecordScorer:
    """Scores the records of an engine."""

    def __init__(
        self,
        options: Options,
        *,
        account: CompletionListener,
        emission: EmitterGroup,
        self_metrics: SelfMetrics,
        helper: HelperScoring | None,
        redaction: Redaction,
        log: ThrottledLog,
    ) -> None:
        self._account = account
        self._helper = helper
        self._judge_threads = DaemonThreads(1, name="ragspan-judge")
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
        budget = BudgetTracker(options.budget) if options.budget is not None else None
        fallback_judge = make_fallback_judge(options.budget) if options.budget is not None else None
        if options.judging == "thread":
            prepare_judges(options.metrics, fallback_judge)
        self._runners = [
            MetricRunner(
                metric,
                concurrency=options.concurrency,
                observer=self,
                redaction=redaction,
                budget=budget,
                fallback_judge=fallback_judge,
                judge_threads=self._judge_threads,
                helper=helper,
            )
            for metric in options.metrics
        ]

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
            session=JudgingSession(record=record),
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

    def run_ended(self, run: MetricTask) -> None:
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

    def stop(self, deadline: Deadline) -> None:  # noqa: ARG002 - nothing here takes time
        """Nothing that ends from here on counts."""
        self._is_closed = True
        self._judge_threads.shutdown(cancel_futures=True)
        self._redaction.close()
        for runner in self._runners:
            runner.close()

    def close(self) -> None:
        """The worker's loop is about to be wound down: let go of what depends on it."""
        for work in [*self._in_work]:
            self._emit_drop(work)
        if self._helper is not None:
            self._helper.client.close()

    def join(self) -> None:
        """The worker's loop is gone."""
        if self._helper is not None:
            self._helper.client.join()

    def flush(self, deadline: Deadline) -> bool:
        """Let the emitters send what they hold."""
        return self._emission.flush(deadline)

    def shutdown(self, deadline: Deadline) -> None:
        """Shut the emitters down."""
        self._emission.shutdown(deadline)

    async def _judge(self, work: _Work) -> None:
        """Run the chosen metrics at the same time; emit what is there after the wait, and once more what came later."""
        began = perf_counter()
        work.runs += [self._start(runner, work) for runner in self._runners]
        await wait_for_runs(work.runs, min(self._wait, self._timeout))
        if self._timeout <= self._wait:
            _expire(work.runs, self._timeout)
        self._emit_ended(work)
        if work.runs:
            await wait_for_runs(work.runs, self._timeout - (perf_counter() - began))
            _expire(work.runs, self._timeout)
            self._emit_ended(work)

    def _start(self, runner: MetricRunner, work: _Work) -> MetricTask:
        is_chosen = not work.item.sample or self._sampling.chooses(runner.name, work.record, work.handle.span)
        return runner.start(work.record, work.session) if is_chosen else runner.skip(work.record, "not_sampled")

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
        refusal, language = work.about = work.about or self._about(work)
        scored = ScoredRecord(
            record=work.record,
            outcomes=outcomes,
            late=before is not None,
            span=work.handle.span,
            retrieval_spans=work.handle.retrieval_spans,
            refusal=refusal,
            language=language,
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
        _, error = call_guarded(instrument, *about)
        if error is not None:
            self.note_error("self_metrics", error)

    def _about(self, work: _Work) -> About:
        """What is known of the response; the helper has said it where it scored the record."""
        told = None if self._helper is None else self._helper.about(work.session)
        if told is not None:
            return told
        about, error = call_guarded(about_response, work.record)
        if error is not None:
            self.note_error("response", error)
        return about or (False, None)

    def note_error(self, place: str, error: BaseException) -> None:
        """Count something that loses no record, by its place."""
        self._account.record_error(place)
        self._log.trouble(place, "%s failed with %s", place, type(error).__name__)


@dataclass(kw_only=True, slots=True, eq=False)
class _Work:
    """A record that is being scored."""

    item: Item
    record: RagRecord
    handle: GroupHandle
    session: JudgingSession
    about: About | None = None
    runs: list[MetricTask] = field(default_factory=list)
    """Those whose outcomes are not emitted yet."""
    result: ScoredRecord | None = None
    """All that has been emitted; what follows comes late."""


def about_response(record: RagRecord) -> About:
    response = record.response or ""
    if not response.strip():
        return False, None
    contexts = [context.text for context in record.contexts or ()]
    return is_refusal(response), languages_of(response, contexts, record.question or "").response.code


def _outcome_of_dropped(run: MetricTask) -> Outcome:
    """Its own, unless it failed: that may be because it was cancelled with the record."""
    if isinstance(run.outcome, (Score, NotApplicable)):
        return run.outcome
    return _WORKER_ERROR


def _expire(runs: Iterable[MetricTask], timeout: float) -> None:
    for run in runs:
        run.expire(timeout)
