"""What happens to one record in the worker's loop: redacted, started at the emitters, scored, emitted; then it is counted, once."""

from __future__ import annotations

import re
from dataclasses import replace

from ragspan.engine.budget import BudgetTracker
from ragspan.engine.emitter_group import EmitterGroup, GroupHandle
from ragspan.engine.helper.client import HelperClient
from ragspan.engine.judge_share_decisions import JudgeShareDecisions
from ragspan.engine.metric_judges import screens_of
from ragspan.engine.metric_outcome import about_response
from ragspan.engine.metric_run import MetricRun, MetricRunner, RunGroup, RunnerParts
from ragspan.engine.options import Options
from ragspan.engine.record_queue import Item
from ragspan.engine.redaction import Redaction
from ragspan.engine.sampling import identity_of
from ragspan.engine.self_metrics import SelfMetrics
from ragspan.engine.stats import Dropped
from ragspan.engine.threads import DaemonThreads, Deadline, call_guarded
from ragspan.judges.background import with_prompt_evidence
from ragspan.judges.judge_when import facts_of
from ragspan.judges.llm.replies import PROBLEMS
from ragspan.outcomes import BUDGET_EXHAUSTED, Asked, MetricFailure, NotApplicable, Outcome, Score, ScoredRecord
from ragspan.records import RagRecord
from ragspan.throttled_log import ThrottledLog
from ragspan.turns import give_turn, with_turns

_ABOUT_ACCESS = re.compile(r"HTTP 40[14]: |Connection error\. \(|Request timed out\.")
"""How our clients' messages on a key, an address or a network begin: the endpoint has read no text that it could quote."""
_WORKER_ERROR = MetricFailure(error_type="worker_error", message="the record was dropped while it was scored")


class RecordScorer:
    """Scores the records of an engine, and has them emitted; `self_metrics` counts what becomes of each metric, `log` errors."""

    def __init__(self, options: Options, *, self_metrics: SelfMetrics, log: ThrottledLog) -> None:
        self._log = log
        self._self_metrics = self_metrics
        self._options = options
        self._is_closed = False
        longest = max((emitter.score_wait for emitter in options.emitters), default=options.metric_timeout)
        self._waits = (longest, None) if longest < options.metric_timeout else (None,)
        """Seconds for the scores that are emitted together, and those for the late ones; None waits for all."""
        self.helper = HelperClient(log) if options.judging == "helper" else None
        self._emission = EmitterGroup(options.emitters, log)
        parts = self._parts = RunnerParts(
            options=options,
            log=log,
            redaction=Redaction(options.redact, timeout=options.metric_timeout, log=log),
            judge_threads=DaemonThreads(1, name="ragspan-judge"),
            helper=self.helper,
            budget=BudgetTracker(options.budget) if options.budget is not None else None,
            on_end=self._run_ended,
        )
        asking = screens_of(options.metrics) if options.judge_share is not None else {}
        self._runners = [MetricRunner(one, parts, has_share=one.name in asking) for one in options.metrics]
        self._decisions: JudgeShareDecisions | None = None
        if options.judge_share is not None:
            self._decisions = JudgeShareDecisions(options.judge_share, asking, self_metrics.meter)

    async def process(self, item: Item) -> ScoredRecord | Dropped | None:
        """What becomes of one item; None if it is out already."""
        record = await self._parts.redaction.redacted_record(item)
        if not isinstance(record, RagRecord):
            return record
        if self._options.unknown_contexts == "prompt":
            record = with_prompt_evidence(record)
        give_turn()
        result = await self._judge(item, record)
        if result is not None:
            _, error = call_guarded(self._count, item, result)
            if error is not None:
                self._log.failed("self_metrics", error)
        return result

    async def _judge(self, item: Item, record: RagRecord) -> ScoredRecord | None:
        """Run the metrics at the same time, and emit what has ended after the wait, and the rest when all have ended."""
        handle = self._emission.start(record)
        runners = [one for one in self._runners if item.only is None or one.name in item.only]
        group = RunGroup(record, self._parts, size=len(runners))
        runs, result = [MetricRun(runner, group) for runner in runners], None
        give_turn()
        try:
            asked = await self._start(item, handle, group, runs)
            for wait in self._waits:
                if not item.is_out:
                    await group.wait(wait)
                if not item.is_out and (runs or result is None):  # else a shutdown has dropped it, or all is out
                    done = [one for one in runs if one.outcome is not None]
                    runs = [one for one in runs if one.outcome is None]
                    result = self._emit(group, handle, done, asked=asked, before=result)
        except BaseException:  # the caller, a metric or the worker cancelled this task; the worker counts the record
            for run in runs:
                run.cancel(_WORKER_ERROR)
            raise
        finally:
            if result is None:  # it is dropped, by that or by a shutdown
                handle.tell(lambda one: one.abandon())
        return result

    def flush(self, deadline: Deadline) -> bool:
        """Let the emitters send what they hold."""
        return self._emission.flush(deadline)

    def stop(self, deadline: Deadline) -> None:
        """Shut the emitters down. Nothing that ends from here on counts."""
        self._is_closed = True
        self._parts.judge_threads.shutdown(cancel_futures=True)
        self._parts.redaction.close()
        for runner in self._runners:
            runner.close()
        self._emission.shutdown(deadline)

    def worker_ended(self) -> None:
        """End the helper."""
        if self.helper is not None:
            self.helper.close()

    async def _start(self, item: Item, handle: GroupHandle, group: RunGroup, runs: list[MetricRun]) -> Asked | None:
        """Start the metrics that score the record; the others end at once, with the reason. Why the judge is asked, if it is for a share."""
        options, record = self._options, group.record
        facts = facts_of(record) if options.judge_when is not None else {}
        is_for_nothing = item.on_end is None and any(run.runner.is_paid for run in runs) and not handle.holds_scores
        chosen: list[MetricRun] = []
        for run in runs:
            why_not = "not_exported" if is_for_nothing and run.runner.is_paid else None
            if item.sample:
                why_not = options.why_not(run.runner.name, record, handle.span, facts) or why_not
            if why_not is None:
                chosen.append(run)
            else:
                run.end(run.unscored(why_not))
        asked = None
        if self._decisions is not None and (shared := [run for run in chosen if run.runner.has_share]):
            await group.screen(shared)
            screened = {run.runner.name: run.screened for run in shared if run.screened is not None}
            asked = self._decisions.choose(identity_of(record, handle.span) if item.sample else None, screened)
            for run in shared if asked is None else ():
                if run.screened is not None:
                    run.end(run.screened)
        if not item.is_out:
            group.start([run for run in chosen if run.outcome is None])
        return asked

    def _emit(
        self,
        group: RunGroup,
        handle: GroupHandle,
        done: list[MetricRun],
        *,
        asked: Asked | None,
        before: ScoredRecord | None,
    ) -> ScoredRecord:
        """Emit the outcomes of these runs, late if others were emitted before; returns all of them."""
        give_turn()
        refusal, language = group.session.get_or_make("about", lambda: about_response(group.record))
        scored = ScoredRecord(
            record=group.record,
            outcomes={run.runner.name: run.outcome for run in done if run.outcome is not None},
            late=before is not None,
            span=handle.span,
            refusal=refusal,
            language=language,
            durations={run.runner.name: run.seconds for run in done if run.task is not None},
            asked=asked,
        )
        handle.tell(lambda one: one.finish(scored) if before is None else one.late(scored))
        if before is None:
            return scored
        outcomes, durations = {**before.outcomes, **scored.outcomes}, {**before.durations, **scored.durations}
        return replace(before, outcomes=outcomes, durations=durations)

    def _run_ended(self, run: MetricRun, outcome: Outcome) -> None:
        """Log that a metric failed, and count what it took."""
        if self._is_closed:
            return  # it was cancelled: that is not a failure of the metric
        name = run.runner.name
        if isinstance(outcome, MetricFailure) and outcome is not _WORKER_ERROR:
            self._log.count("metric")
            # A service that is down, or a model that is too small, fails all metrics at once: one line for them.
            kind, advice = ("outage", "; ragspan doctor shows why") if outcome.outage else (f"metric {name}", "")
            status = f" (HTTP {outcome.status})" if outcome.status else ""
            if outcome.message in PROBLEMS:
                kind, advice = outcome.message, f": {outcome.message}"
            elif outcome.outage and _ABOUT_ACCESS.match(outcome.message):
                advice, status = f": {outcome.message}{advice}", ""
            self._log.report(kind, "metric %s failed with %.100s%s%s", name, outcome.error_type, status, advice)
        if not isinstance(outcome, NotApplicable) or run.usage is not None:
            judge = outcome.judge if isinstance(outcome, Score) and not (outcome.fallback and run.usage) else None
            self._self_metrics.judged(name, judge, run.seconds, run.usage)

    def _count(self, item: Item, scored: ScoredRecord) -> None:
        """Count what came of a record, once that is all there is."""
        for name, outcome in with_turns(scored.outcomes.items()):
            self._self_metrics.ended(name, outcome)
            if BUDGET_EXHAUSTED in (getattr(outcome, "reason", None), getattr(outcome, "fallback", None)):
                words = "the budget has no room for a request: metrics such as %s are not scored by their own judge"
                self._log.report("budget", words, name)
        if self._decisions is not None and item.sample:
            self._decisions.count(scored)
