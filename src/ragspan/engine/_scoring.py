"""What happens to one record: opened, chosen or not, scored, emitted, counted.

All of it runs in the worker's event loop. A record ends in the ledger exactly once, after its last emission.
"""

from __future__ import annotations

import asyncio
import functools
import hashlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import TypeAlias

from ragspan.engine._anchors import AnchorRounds
from ragspan.engine._emitter_group import EmitterGroup, GroupHandle
from ragspan.engine._judges import make_fallback_judge, prepare_judges
from ragspan.engine._metric_run import BUDGET_EXHAUSTED, MetricRunner, MetricTask
from ragspan.engine._options import Options
from ragspan.engine._record_queue import CompletionListener, Item
from ragspan.engine._redaction import Redaction
from ragspan.engine._score_watch import ScoreWatch
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
        rate = self.metric_rates.get(metric, self.rate)
        return rate >= 1 or draw(f"{trace.trace_id:032x}" if trace is not None else record.record_id) < rate


def draw(identity: str) -> float:
    """A number from 0 to below 1, always the same for the same identity.

    A hash with a key of its own, not the bits of the trace id: samplers of traces compare those to their rate. Where
    one of them keeps a tenth of the traces, a tenth taken by the same bits would be all that is left.
    """
    digest = hashlib.blake2b(identity.encode(errors="surrogatepass"), digest_size=_HASH_BYTES, key=_KEY).digest()
    return int.from_bytes(digest, "big") / (1 << 8 * _HASH_BYTES)


class RecordScorer:
    """Scores the records of an engine, and has them emitted.

    Args:
        options: of the engine.
        account: told what becomes of each record.
        self_metrics: told what becomes of each metric.
        log: of the engine.
        uses_helper: whether metrics may be scored in a helper process.
        clock: Unix seconds.
    """

    def __init__(
        self,
        options: Options,
        *,
        account: CompletionListener,
        self_metrics: SelfMetrics,
        log: ThrottledLog,
        uses_helper: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._account = account
        self._self_metrics = self_metrics
        self._score_watch = ScoreWatch(self_metrics.meter, clock=clock)
        self._log = log
        self._in_work: set[_Work] = set()
        self._is_closed = False
        self._timeout = options.metric_timeout
        self._wait = max((emitter.score_wait for emitter in options.emitters), default=0.0)
        self._sampling = Sampling(
            rate=options.sample_rate,
            metric_rates=options.metric_sample_rates,
            score_unsampled=options.score_unsampled,
        )
        self.helper = HelperScoring(log) if uses_helper else None
        self.judge_threads = DaemonThreads(1, name="ragspan-judge")
        """Where metrics are scored in this process whose judges need the processor."""
        self.redaction = Redaction(options.redact, timeout=options.metric_timeout, account=account, log=log)
        self.emission = EmitterGroup(options.emitters, account=account, log=log)
        self.budget = BudgetTracker(options.budget) if options.budget is not None else None
        self.fallback_judge = make_fallback_judge(options.budget) if options.budget is not None else None
        """The judge that takes over when the budget is spent; without one the metric does not apply then."""
        if options.judging == "thread":
            prepare_judges(options.metrics, self.fallback_judge)
        self._runners = [MetricRunner(metric, self, concurrency=options.concurrency) for metric in options.metrics]
        self._anchors = (
            AnchorRounds(options.anchors, self._runners, self._score_watch, timeout=self._timeout, clock=clock)
            if options.anchors
            else None
        )

    async def score(self, item: Item, record: RagRecord | None = None) -> None:
        """Bring one item to its end; `record` is what it has become, where that is known."""
        record = record or await self.redaction.record_of(item)
        if record is None:
            return
        handle = self.emission.start(record)
        work = _Work(item=item, record=record, handle=handle, session=JudgingSession(record=record))
        self._in_work.add(work)
        try:
            await self._judge(work)
        except BaseException:  # who awaited it, or a metric, cancelled this; the worker counts it
            for run in work.runs:
                run.cancel(_WORKER_ERROR)
            self._emit_drop(work)
            raise
        finally:
            self._in_work.discard(work)
            if work.result is None:  # a shutdown dropped it
                handle.tell(lambda handle: handle.abandon())
        if work.result is not None:
            _, error = call_guarded(self._score_watch.take, work.result)
            if error is not None:
                self.note_error("self_metrics", error)
        if self._anchors is not None and not self._is_closed:
            self._anchors.begin_if_due()
        self._account.end(item, work.result)

    def run_ended(self, run: MetricTask) -> None:
        """Count what a run took, unless the metric did not apply and spent nothing."""
        if self._is_closed:
            return  # it was cancelled, and is none of the metric's failures
        outcome = run.outcome
        if isinstance(outcome, MetricFailure) and outcome is not _WORKER_ERROR:
            self._account.record_error("metric")
            self._log.trouble(f"metric {run.name}", "metric %s failed with %.100s", run.name, outcome.error_type)
        error = None
        if not run.is_anchor:
            if BUDGET_EXHAUSTED in (getattr(outcome, "reason", None), getattr(outcome, "fallback", None)):
                self._log.trouble("budget", "the budget is spent: metric %s is not scored by its own judge", run.name)
            _, error = call_guarded(self._self_metrics.ended, run.name, outcome)
        if error is None and (not isinstance(outcome, NotApplicable) or run.usage is not None):
            judge = outcome.judge if isinstance(outcome, Score) and not (outcome.fallback and run.usage) else None
            _, error = call_guarded(self._self_metrics.judged, run.name, judge, run.seconds, run.usage)
        if error is not None:
            self.note_error("self_metrics", error)

    def note_error(self, place: str, error: BaseException) -> None:
        """Count something that loses no record, by its place."""
        self._account.record_error(place)
        self._log.trouble(place, "%s failed with %s", place, type(error).__name__)

    def flush(self, deadline: Deadline) -> bool:
        """Let the emitters send what they hold."""
        return self.emission.flush(deadline)

    def stop(self, deadline: Deadline) -> None:
        """Shut the emitters down. Nothing that ends from here on counts."""
        self._is_closed = True
        self.judge_threads.shutdown(cancel_futures=True)
        self.redaction.close()
        for runner in self._runners:
            runner.close()
        self.emission.shutdown(deadline)

    def worker_ended(self) -> None:
        """Tell the emitters of the records that get no more outcomes, and end the helper."""
        for work in [*self._in_work]:
            self._emit_drop(work)
        if self.helper is not None:
            self.helper.client.close()

    async def _judge(self, work: _Work) -> None:
        """Run the chosen metrics at the same time; emit what is there after the wait, and once more what came later."""
        began = perf_counter()
        for runner in self._runners:
            is_chosen = not work.item.sample or self._sampling.chooses(runner.name, work.record, work.handle.span)
            run = runner.start(work.record, work.session) if is_chosen else runner.skip(work.record, "not_sampled")
            work.runs.append(run)
        waits = (self._wait, self._timeout) if self._wait < self._timeout else (self._timeout,)
        for wait in waits:
            running = [run.task for run in work.runs if run.task is not None and run.outcome is None]
            if running:
                await asyncio.wait(running, timeout=max(0.0, wait - (perf_counter() - began)))
            if wait == self._timeout:
                for run in work.runs:
                    run.cancel(MetricFailure(error_type="timeout", message=f"no outcome within {wait:g} s"))
            self._emit(work)
            if not work.runs:
                return

    def _emit_drop(self, work: _Work) -> None:
        """Tell the emitters that this record gets no more outcomes: what they opened for it would stay open."""
        if work in self._in_work and not self._is_closed:  # else they were told, or their own shutdown ends it
            self._in_work.discard(work)
            self._emit(work, is_dropped=True)

    def _emit(self, work: _Work, *, is_dropped: bool = False) -> None:
        """Emit what has ended since the last time; of a record that is dropped, an outcome of each metric that is left."""
        if not is_dropped and not self._account.has_in_work(work.item):
            return  # abandoned by a shutdown, after which nothing is emitted
        ended = [run for run in work.runs if is_dropped or run.outcome is not None]
        work.runs = [run for run in work.runs if run not in ended]
        outcomes: dict[str, Outcome] = {}
        for run in ended:
            has_own = (
                isinstance(run.outcome, (Score, NotApplicable)) or not is_dropped
            )  # it may fail as it is cancelled
            outcomes[run.name] = run.outcome if run.outcome is not None and has_own else _WORKER_ERROR
        durations = {run.name: run.seconds for run in ended if run.task is not None and not is_dropped}
        before = work.result
        refusal, language = work.session.keep("about", functools.partial(self._about, work.record))
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
        work.handle.tell(lambda handle: handle.late(scored) if scored.late else handle.finish(scored))
        work.result = scored
        if before is not None:
            all_durations = {**before.durations, **durations}
            work.result = replace(before, outcomes={**before.outcomes, **outcomes}, durations=all_durations)

    def _about(self, record: RagRecord) -> About:
        """What is known of the response, where the helper has not said it."""
        about, error = call_guarded(about_response, record)
        if error is not None:
            self.note_error("response", error)
        return about or (False, None)


@dataclass(kw_only=True, slots=True, eq=False)
class _Work:
    """A record that is being scored."""

    item: Item
    record: RagRecord
    handle: GroupHandle
    session: JudgingSession
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
