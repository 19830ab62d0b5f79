"""What happens to one record: redacted, started at the emitters, scored, emitted, counted.

All of it runs in the worker's event loop. A record is counted exactly once, after its last emission.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace

from ragspan.config import deployment_environment
from ragspan.engine.budget import BudgetTracker, Denial
from ragspan.engine.emitter_group import EmitterGroup, GroupHandle
from ragspan.engine.helper.client import HelperClient
from ragspan.engine.judge_share_decisions import JudgeShareDecisions
from ragspan.engine.metric_judges import make_fallback_judge, screens_of
from ragspan.engine.metric_outcome import about_response
from ragspan.engine.metric_run import MetricRunner, MetricTask, RunnerParts
from ragspan.engine.options import Options
from ragspan.engine.record_queue import Item
from ragspan.engine.record_redaction import Redaction
from ragspan.engine.sampling import identity_of
from ragspan.engine.stats import Dropped
from ragspan.engine.threads import DaemonThreads, Deadline, call_guarded
from ragspan.judge_when import Facts, facts_of
from ragspan.judges.llm.replies import PROBLEMS
from ragspan.judges.prompt_evidence import with_prompt_evidence
from ragspan.judges.session import JudgingSession
from ragspan.metrics.doubt import screen_score
from ragspan.outcomes import BUDGET_EXHAUSTED, Asked, MetricFailure, NotApplicable, Outcome, Score, ScoredRecord
from ragspan.records import RagRecord
from ragspan.telemetry.self_metrics import SelfMetrics
from ragspan.throttled_log import ThrottledLog
from ragspan.turns import give_turn
from ragspan.usage import Usage

_WORKER_ERROR = MetricFailure(
    error_type="worker_error", message="the record was dropped while it was scored", outage=True
)


class RecordScorer:
    """Scores the records of an engine, and has them emitted.

    Args:
        options: of the engine.
        self_metrics: counts what becomes of each metric.
        log: of the engine; counts errors.
    """

    def __init__(self, options: Options, *, self_metrics: SelfMetrics, log: ThrottledLog) -> None:
        self._log = log
        self._self_metrics = self_metrics
        self._options = options
        self._score_wait = options.score_wait
        self._is_closed = False
        self.helper = HelperClient(log) if options.judging == "helper" else None
        self._judge_threads = DaemonThreads(1, name="ragspan-judge")
        self._redaction = Redaction(options.redact, timeout=options.metric_timeout, log=log)
        self.emission = EmitterGroup(options.emitters, log)
        self._budget = BudgetTracker(options.budget) if options.budget is not None else None
        parts = RunnerParts(
            log=log,
            redaction=self._redaction,
            judge_threads=self._judge_threads,
            helper=self.helper,
            budget=self._budget,
            fallback_judge=make_fallback_judge(options.budget) if options.budget is not None else None,
            waits_for_budget=options.waits_for_budget,
            timeout=options.metric_timeout,
            on_end=self._run_ended,
        )
        screens = screens_of(options.metrics) if options.judge_share is not None or options.asks_screen else {}
        self._runners = [
            MetricRunner(metric, parts, has_share=metric.name in screens, screen=screens.get(metric.name))
            for metric in options.metrics
        ]
        self._spends = any(runner.is_paid for runner in self._runners)
        self._decisions: JudgeShareDecisions | None = None
        if options.judge_share is not None:
            self._decisions = JudgeShareDecisions(options.judge_share, screens, self._budget, self_metrics.meter)
        self._environment = deployment_environment()

    async def process(self, item: Item) -> ScoredRecord | Dropped | None:
        """What becomes of one item; None if it is out already."""
        record = await self._redaction.redacted_record(item)
        if not isinstance(record, RagRecord):
            return record
        if self._options.unknown_contexts == "prompt":
            record = with_prompt_evidence(record)
        give_turn()
        work = _RecordInWork(
            item=item, record=record, handle=self.emission.start(record), session=JudgingSession(record=record)
        )
        try:
            await self._judge(work)
        except BaseException:  # the caller, a metric or the worker cancelled this task; the worker counts the record
            for run in work.runs:
                run.cancel(_WORKER_ERROR)
            raise
        finally:
            if work.result is None:  # it is dropped, by that or by a shutdown
                work.handle.tell(lambda handle: handle.abandon())
        if work.result is not None:
            _, error = call_guarded(self._report, work, work.result)
            if error is not None:
                self._log.failed("self_metrics", error)
        return work.result

    def _report(self, work: _RecordInWork, scored: ScoredRecord) -> None:
        """Count what came of a record, once that is all there is."""
        for name, outcome in scored.outcomes.items():
            self._self_metrics.ended(name, outcome)
            if BUDGET_EXHAUSTED in (getattr(outcome, "reason", None), getattr(outcome, "fallback", None)):
                self._log.report(
                    "budget",
                    "the budget has no room for a request: metrics such as %s are not scored by their own judge",
                    name,
                )
        if self._decisions is not None and work.item.sample:
            self._decisions.count(scored, work.usages)

    def _run_ended(self, run: MetricTask, outcome: Outcome) -> None:
        """Log that a metric failed, and count what it took."""
        if self._is_closed:
            return  # it was cancelled: that is not a failure of the metric
        name = run.runner.name
        if isinstance(outcome, MetricFailure) and outcome is not _WORKER_ERROR:
            self._log.count("metric")
            # A service that is down, or a model that is too small, fails all metrics at once: one line for them.
            kind, advice = ("outage", "; ragspan doctor shows why") if outcome.outage else (f"metric {name}", "")
            if outcome.message in PROBLEMS:
                kind, advice = outcome.message, f": {outcome.message}"
            self._log.report(kind, "metric %s failed with %.100s%s", name, outcome.error_type, advice)
        if not isinstance(outcome, NotApplicable) or run.usage is not None:
            judge = outcome.judge if isinstance(outcome, Score) and not (outcome.fallback and run.usage) else None
            self._self_metrics.judged(name, judge, run.seconds, run.usage)

    def flush(self, deadline: Deadline) -> bool:
        """Let the emitters send what they hold."""
        return self.emission.flush(deadline)

    def stop(self, deadline: Deadline) -> None:
        """Shut the emitters down. Nothing that ends from here on counts."""
        self._is_closed = True
        self._judge_threads.shutdown(cancel_futures=True)
        self._redaction.close()
        for runner in self._runners:
            runner.close()
        self.emission.shutdown(deadline)

    def worker_ended(self) -> None:
        """End the helper."""
        if self.helper is not None:
            self.helper.close()

    async def _judge(self, work: _RecordInWork) -> None:
        """Run the chosen metrics at the same time. Emit what has ended after the wait, and the rest when all have ended."""
        give_turn()
        await self._start(work)
        for wait in (self._score_wait, None):
            if work.runs and not work.item.is_out:
                await asyncio.wait([run.ended for run in work.runs], timeout=wait)
            if work.item.is_out:
                return  # a shutdown has dropped it
            outcomes = {run.runner.name: outcome for run in work.runs if (outcome := run.outcome) is not None}
            ran = [run for run in work.runs if run.outcome is not None and run.task is not None]
            work.usages += [run.usage for run in ran if run.usage is not None]
            work.runs = [run for run in work.runs if run.outcome is None]
            self._emit(work, outcomes, {run.runner.name: run.seconds for run in ran})
            if not work.runs:
                return

    async def _start(self, work: _RecordInWork) -> None:
        """Start the runs of the chosen metrics; the others have ended at once, with the reason."""
        item, record, when = work.item, work.record, self._options.judge_when
        facts = facts_of(record, self._environment) if when is not None else {}
        is_for_nothing = self._spends and item.on_end is None and not work.handle.holds_scores
        chosen: list[MetricTask] = []
        for runner in self._runners:
            if item.only is not None and runner.name not in item.only:
                continue
            why_not = "not_exported" if is_for_nothing and runner.is_paid else None
            if item.sample:
                why_not = self._options.why_not(runner.name, record, work.handle.span, facts) or why_not
            run = MetricTask(runner=runner)
            work.runs.append(run)
            if why_not is None:
                chosen.append(run)
            else:
                runner.skip(run, record, why_not)
        denial = await self._ask_screen(work, [run for run in chosen if run.runner.has_share], facts)
        for run in chosen:
            if run.screened is not None and work.asked is None:
                run.end(run.screened)
            elif run.outcome is None and not item.is_out:
                give_turn()
                run.runner.start(run, record, work.session, None if run.screened is None else denial)

    async def _ask_screen(self, work: _RecordInWork, runs: list[MetricTask], facts: Facts) -> Denial | None:
        """Let the embedded judge score, and decide whether the judge is asked; what of the budget denies that."""
        record, item, when = work.record, work.item, self._options.judge_when
        if not runs:
            return None
        await asyncio.gather(*(run.runner.screen(run, record, work.session) for run in runs))
        screened = {run.runner.name: run.screened for run in runs if run.screened is not None}
        if when is not None and item.sample and not when.allows(facts, screen_score(screened)):
            return None
        if self._decisions is None:
            work.asked = "doubtful"
            return None
        identity = identity_of(record, work.handle.span) if item.sample else None
        work.asked, denial = self._decisions.choose(identity, screened)
        return denial

    def _emit(self, work: _RecordInWork, outcomes: dict[str, Outcome], durations: dict[str, float]) -> None:
        give_turn()
        before = work.result
        refusal, language = work.session.get_or_make("about", lambda: about_response(work.record))
        scored = ScoredRecord(
            record=work.record,
            outcomes=outcomes,
            late=before is not None,
            span=work.handle.span,
            refusal=refusal,
            language=language,
            durations=durations,
            asked=work.asked,
        )
        work.handle.tell(lambda handle: handle.late(scored) if scored.late else handle.finish(scored))
        work.result = scored
        if before is not None:
            all_durations = {**before.durations, **durations}
            all_outcomes = {**before.outcomes, **outcomes}
            work.result = replace(before, outcomes=all_outcomes, durations=all_durations, asked=scored.asked)


@dataclass(kw_only=True, slots=True, eq=False)
class _RecordInWork:
    """A record that is being scored."""

    item: Item
    record: RagRecord
    handle: GroupHandle
    session: JudgingSession
    runs: list[MetricTask] = field(default_factory=list)
    """Those whose outcomes are not emitted yet."""
    asked: Asked | None = None
    """Why the judge is asked about it, where it is asked about a share."""
    usages: list[Usage] = field(default_factory=list)
    """Of the runs that have ended."""
    result: ScoredRecord | None = None
    """All that has been emitted; what follows comes late."""
