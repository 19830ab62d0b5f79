"""Runs the metrics of a record. A run has exactly one outcome.

What the metric raises, an answer that is not an outcome, and silence until the timeout become a `MetricFailure`. Nobody waits for a
run that has timed out: it is cancelled, but may swallow that.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import inspect
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ragspan.engine.budget import BudgetTracker
from ragspan.engine.helper.client import HelperClient
from ragspan.engine.judge_share_decisions import beside_screen
from ragspan.engine.metric_judges import are_cpu_bound, spenders_of, with_embedded_judge
from ragspan.engine.metric_outcome import outcome_of
from ragspan.engine.options import Options
from ragspan.engine.redaction import Redaction
from ragspan.engine.threads import DaemonThreads, call_guarded, run_in_loop
from ragspan.exceptions import BudgetExhausted
from ragspan.judges.session import JudgingSession, judging
from ragspan.metrics.metric import Metric, Screening
from ragspan.outcomes import BUDGET_EXHAUSTED, MetricFailure, NotApplicable, Outcome, Score
from ragspan.records import RagRecord
from ragspan.telemetry.otel_context import suppressed
from ragspan.throttled_log import ThrottledLog
from ragspan.turns import give_turn, with_turns
from ragspan.usage import Usage

NOT_ASKED = "not_asked"
_MAX_THREADS = 16  # of one metric
_PACE = 1.0  # seconds between two looks at a budget


class MetricCall:
    """Calls a metric where it belongs: in a thread, or in the running event loop; `number` is the helper's, if that scores it."""

    def __init__(self, metric: Metric, parts: RunnerParts) -> None:
        self.number = None if parts.helper is None else parts.helper.add(metric)
        self._metric = metric
        self._threads: DaemonThreads | None = None
        self._in_thread: Callable[[RagRecord], object] = metric.score
        if not inspect.iscoroutinefunction(metric.score):
            self._threads = DaemonThreads(_MAX_THREADS, name=f"ragspan-{metric.name}")
        elif any(bound := are_cpu_bound(metric)):
            # Judges that also wait, such as a classifier with its own thread, need not run one after the other.
            own = parts.judge_threads
            self._threads = own if all(bound) else DaemonThreads(_MAX_THREADS, name=own.name)
            self._in_thread = functools.partial(run_in_loop, metric.score)

    async def __call__(self, record: RagRecord) -> object:
        answer: object
        if self._threads is None:
            answer = self._metric.score(record)
        else:
            context = contextvars.copy_context()
            # The thread hands over what was raised as a value: asyncio's futures cannot hold every exception.
            calling = self._threads.submit(context.run, call_guarded, self._in_thread, record)
            answer, error = await asyncio.wrap_future(calling)
            if error is not None:
                raise error
        return await answer if inspect.isawaitable(answer) else answer

    def close(self) -> None:
        if self._threads is not None:
            self._threads.shutdown(cancel_futures=True)


@dataclass(frozen=True, kw_only=True, eq=False)
class RunnerParts:
    """What the metrics of one engine share."""

    options: Options
    log: ThrottledLog
    redaction: Redaction
    judge_threads: DaemonThreads
    """Where metrics are scored in this process whose judges need the processor."""
    helper: HelperClient | None
    """Where they are scored otherwise, in a process of its own."""
    budget: BudgetTracker | None
    on_end: Callable[[MetricRun, Outcome], None]
    """Called with each run that has ended."""


class MetricRunner:
    """One metric of an engine, and how it is called; `has_share` if its judge is asked about a share of the answers."""

    def __init__(self, metric: Metric, parts: RunnerParts, *, has_share: bool = False) -> None:
        self.name = metric.name
        self.metric = metric
        self.parts = parts
        self.is_paid = any(spenders_of(metric))
        """Whether its judge spends money."""
        self.has_share = has_share
        budget = parts.options.budget
        replaces = has_share or (budget is not None and budget.fallback == "overlap")
        embedded = with_embedded_judge(metric) if replaces else None
        self.own = MetricCall(metric, parts)
        self.embedded = None if embedded is None else MetricCall(embedded, parts)

    def close(self) -> None:
        for call in (self.own, self.embedded):
            if call is not None:
                call.close()


class MetricRun:
    """One metric at work on one record, in the running event loop."""

    def __init__(self, runner: MetricRunner, group: RunGroup) -> None:
        self.runner = runner
        self._group = group
        self.screened: Outcome | None = None
        """What the embedded judge says, where the judge is asked about a share of the answers."""
        self.outcome: Outcome | None = None
        """None as long as it runs."""
        self.seconds = 0.0
        """How long it took."""
        self.usage: Usage | None = None
        """What it has spent, if anything; None as long as it runs."""
        self.task: asyncio.Task[Any] | None = None
        self.has_waited = False
        """For the next minute of the budget."""
        self._meter: list[Usage] = []
        self.began = time.perf_counter()

    def start(self) -> None:
        """Begin to score the record in the application."""
        if (announce := getattr(self.runner.metric, "announce", None)) is not None:
            call_guarded(announce, self._group.record, self._group.session)
        budget = self.runner.parts.budget
        denials: list[BudgetExhausted] = []
        limit = None if budget is None else functools.partial(budget.reserve, denials=denials)
        session = replace(self._group.session, meter=self._meter, allowance=limit)
        self._group.begin(self._work(denials), [self], session)

    def end(self, outcome: Outcome) -> None:
        """Take the outcome, unless there is one already."""
        if self.outcome is not None:
            return
        give_turn()
        self.seconds = time.perf_counter() - self.began
        ended = outcome if self.screened is None else beside_screen(outcome, self.screened)
        spent = sum(self._meter, Usage()) if self._meter else None
        if spent is not None and spent != Usage():
            self.usage = spent
            if ended.usage is None:
                ended = replace(ended, usage=self.usage)
        self.outcome = ended
        _, error = call_guarded(self.runner.parts.on_end, self, outcome)
        if error is not None:
            self.runner.parts.log.failed("self_metrics", error)
        self._group.run_ended()

    def take_screened(self, outcome: Outcome) -> None:
        self.screened = outcome

    def cancel(self, outcome: Outcome) -> None:
        """End with this outcome, if it has not ended, and let what works on it know."""
        if self.outcome is None:
            self.end(outcome)
            if self.task is not None:
                self.task.cancel()

    async def _work(self, denials: list[BudgetExhausted]) -> None:
        """Score, once more after each pause for a minute's budget. Where the budget denies a request, the fallback takes over."""
        parts, record = self.runner.parts, self._group.record
        while True:
            outcome = await outcome_of(self.runner.own, record)
            has_failed = isinstance(outcome, MetricFailure) and self.outcome is None
            denial = denials[-1] if has_failed and denials else None
            denials.clear()
            if denial is None or not denial.outage or not parts.options.waits_for_budget:
                break
            self.has_waited = True
            await asyncio.sleep(_PACE)
        if denial is None:
            self.end(await parts.redaction.outcome(outcome))
        elif isinstance(self.screened, Score):
            self._end_by_fallback(self.screened)
        elif self.runner.embedded is None:
            self.end(self.unscored(BUDGET_EXHAUSTED, denial.limit))
        else:
            await self._group.score({self: self.runner.embedded}, MetricRun._end_by_fallback)

    def _end_by_fallback(self, outcome: Outcome) -> None:
        self.end(replace(outcome, fallback=BUDGET_EXHAUSTED) if isinstance(outcome, Score) else outcome)

    def unscored(self, reason: str, detail: str | None = None) -> NotApplicable:
        """Why it does not score; the metric's own reason comes first: it would not have applied in any case."""
        if isinstance(self.runner.metric, Screening):
            own, error = call_guarded(self.runner.metric.screen, self._group.record)
            if error is not None:
                self.runner.parts.log.failed("screen", error)
            elif isinstance(own, NotApplicable):
                return own
        return NotApplicable(reason=reason, detail=detail)


class RunGroup:
    """So many metrics at work on one record, in the running event loop. All that the helper scores of it is one question.

    It does not hold its runs, which hold it: a record leaves nothing to the garbage collector.
    """

    def __init__(self, record: RagRecord, parts: RunnerParts, *, size: int) -> None:
        self.record = record
        self.session = JudgingSession(record=record)
        self._parts = parts
        self._running = size
        self._all_ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def wait(self, seconds: float | None) -> None:
        """Wait until all have an outcome; for so many seconds at most."""
        if self._running:
            await asyncio.wait([self._all_ended], timeout=seconds)

    def run_ended(self) -> None:
        """One has an outcome."""
        self._running -= 1
        if not self._running:
            self._all_ended.set_result(None)

    async def screen(self, runs: Iterable[MetricRun]) -> None:
        """Let the embedded judge score. Its scores stay where the judge is not asked, fails, or is denied by the budget."""
        calls: dict[MetricRun, MetricCall] = {}
        for run in runs:
            if run.runner.embedded is None:
                run.screened = NotApplicable(reason=NOT_ASKED)
            else:
                calls[run] = run.runner.embedded
        if calls:
            await asyncio.wait([self.begin(self.score(calls, MetricRun.take_screened), list(calls))])

    def start(self, runs: Iterable[MetricRun]) -> None:
        """Begin to score."""
        calls: dict[MetricRun, MetricCall] = {}
        for run in with_turns(runs):
            if run.runner.own.number is None:
                run.start()
            else:
                calls[run] = run.runner.own
        if calls:
            self.begin(self.score(calls, MetricRun.end), list(calls))

    async def score(self, calls: Mapping[MetricRun, MetricCall], take: Callable[[MetricRun, Outcome], object]) -> None:
        """Hand over the outcome of each call as it comes: from the helper, and from the application if there is none."""
        asked = {call.number: run for run, call in calls.items() if call.number is not None}
        left, redaction, helper = dict(calls), self._parts.redaction, self._parts.helper

        async def take_from_helper(number: int, outcome: Outcome) -> None:
            del left[asked[number]]
            take(asked[number], await redaction.outcome(outcome))

        if helper is not None and asked:
            await helper.score(asked, self.record, self.session, take_from_helper)
        for run, call in left.items():
            take(run, await redaction.outcome(await outcome_of(call, self.record)))

    def begin(
        self, work: Coroutine[Any, Any, None], runs: Sequence[MetricRun], session: JudgingSession | None = None
    ) -> asyncio.Task[None]:
        """The task that does this work for these runs, which are cancelled when the time of a run is up."""
        # The task gets a copy of this context. If the task opened it, a task that is destroyed before its end would close it
        # in another context, which OpenTelemetry logs as an error.
        with suppressed(), judging(session or self.session):
            task = asyncio.get_running_loop().create_task(work)
        for run in runs:
            run.task, run.began = task, time.perf_counter()
        self._limit_time(task, runs)
        return task

    def _limit_time(self, task: asyncio.Task[None], runs: Sequence[MetricRun]) -> None:
        timer = asyncio.get_running_loop().call_later(self._parts.options.metric_timeout, self._time_is_up, task, runs)
        task.add_done_callback(lambda _: timer.cancel())

    def _time_is_up(self, task: asyncio.Task[None], runs: Sequence[MetricRun]) -> None:
        """Cancel the runs. One that has waited for a budget may take as long once more."""
        timeout = self._parts.options.metric_timeout
        for run in runs:
            if run.has_waited and not task.done():
                run.has_waited = False
                self._limit_time(task, runs)
            else:
                run.cancel(MetricFailure(error_type="timeout", message=f"no outcome within {timeout:g} s"))
