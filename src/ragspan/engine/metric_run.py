"""Runs metrics, and turns whatever comes of it into outcomes.

Guarantees:
- A run has exactly one outcome. What the metric raises, `SystemExit` included, an answer that is not an outcome, and silence
  until the timeout become a `MetricFailure`.
- Nobody waits for a run that has timed out. It is cancelled, but may swallow that. A plain `def score` runs in a few threads at most.
- Where the budget denies the metric's judge a request, the fallback judge takes over at once, in the same run. What was
  spent until then counts, and is on the outcome.
- Where the judge is asked about a share of the answers, the embedded judge scores first. Its score stays where the judge is not
  asked, fails, or is denied by the budget.
- Where the engine waits for its budget, a run whose minute is spent begins anew when time has added to it.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import inspect
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from ragspan.engine.budget import Allowance, BudgetTracker, Denial
from ragspan.engine.helper.client import HelperClient
from ragspan.engine.judge_share_decisions import beside_screen
from ragspan.engine.metric_judges import are_cpu_bound, spenders_of, with_judge
from ragspan.engine.metric_outcome import outcome_of
from ragspan.engine.record_redaction import Redaction
from ragspan.engine.threads import DaemonThreads, call_guarded, run_in_loop
from ragspan.judges.session import JudgingSession, UsageMeter, judging, without_budget
from ragspan.metrics.metric import Announcing, Metric, Screening
from ragspan.outcomes import BUDGET_EXHAUSTED, MetricFailure, NotApplicable, Outcome, Score
from ragspan.records import RagRecord
from ragspan.telemetry.otel_context import suppressed
from ragspan.throttled_log import ThrottledLog
from ragspan.usage import Usage

_T = TypeVar("_T")

NOT_ASKED = "not_asked"
MAX_THREADS = 16  # of one metric
_PACE = 1.0  # seconds between two looks at a budget, at least


class MetricCall:
    """Calls a metric where it belongs: in the helper, in a thread, or in the running event loop."""

    def __init__(self, metric: Metric, threads: DaemonThreads, helper: HelperClient | None) -> None:
        self._metric = metric
        self._helper = helper
        self._number = None if helper is None else helper.add(metric)
        self._threads: DaemonThreads | None = None
        self._in_thread: Callable[[RagRecord], object] = metric.score
        if not inspect.iscoroutinefunction(metric.score):
            self._threads = threads
        elif any(bound := are_cpu_bound(metric)):
            # Judges that also wait, such as a classifier with its own thread, need not run one after the other.
            self._threads = threads if all(bound) else DaemonThreads(MAX_THREADS, name=threads.name)
            self._in_thread = functools.partial(run_in_loop, metric.score)

    async def __call__(self, record: RagRecord) -> object:
        answer: object
        if self._helper is not None and self._number is not None:
            answer = await self._helper.score(self._number, record)
            if answer is not None:
                return answer
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


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class RunnerParts:
    """What the metrics of one engine share."""

    log: ThrottledLog
    redaction: Redaction
    judge_threads: DaemonThreads
    """Where metrics are scored in this process whose judges need the processor."""
    helper: HelperClient | None
    """Where they are scored otherwise, in a process of its own."""
    budget: BudgetTracker | None
    fallback_judge: object | None
    """The judge that takes over when the budget is spent; without one the metric does not apply then."""
    waits_for_budget: bool
    """Whether a run waits for the next minute of a budget, in place of its fallback."""
    timeout: float
    """Seconds that a run may take; where the judge is asked about a share of the answers, each of both judges."""
    on_end: Callable[[MetricTask, Outcome], None]
    """Called with each run that has ended."""


class MetricRunner:
    """Starts runs of one metric in the running event loop.

    Args:
        metric: with `async def score`, or a plain `def score`, which is called in a thread.
        parts: of its engine.
        has_share: whether it is asked about a share of the answers.
        screen: the metric with the embedded judge, for the others; None if that cannot score it.
    """

    def __init__(
        self, metric: Metric, parts: RunnerParts, *, has_share: bool = False, screen: Metric | None = None
    ) -> None:
        self.name = metric.name
        self.parts = parts
        self._metric = metric
        self.is_paid = any(spenders_of(metric))
        """Whether its judge spends money."""
        self._is_paid_for = parts.budget is not None and self.is_paid
        threads = parts.judge_threads
        if not inspect.iscoroutinefunction(metric.score):
            threads = DaemonThreads(MAX_THREADS, name=f"ragspan-{metric.name}")
        fallback = None if parts.fallback_judge is None else with_judge(metric, parts.fallback_judge)
        self.has_share = has_share
        self._own = MetricCall(metric, threads, parts.helper)
        self._screen = None if screen is None else MetricCall(screen, parts.judge_threads, parts.helper)
        self._fallback = None if fallback is None else MetricCall(fallback, threads, parts.helper)

    def skip(self, run: MetricTask, record: RagRecord, reason: str) -> None:
        """End the run without the metric, with its own reason why it does not apply, if it has one, or this one."""
        run.end(self._unscored(record, reason))

    async def screen(self, run: MetricTask, record: RagRecord, session: JudgingSession) -> None:
        """Let the embedded judge score."""
        outcome: Outcome = NotApplicable(reason=NOT_ASKED)
        if self._screen is not None:
            run.task = task = self._task(run, session, outcome_of(self._screen, record))
            run.limit_time()
            outcome = await task
        run.screened = await self.parts.redaction.outcome(outcome)

    def start(self, run: MetricTask, record: RagRecord, session: JudgingSession, denial: Denial | None) -> None:
        """Begin to score the record, whose metrics share the session; after a denial the judge is not asked."""
        if isinstance(self._metric, Announcing):
            call_guarded(self._metric.announce, record, session)
        run.allowance = None if self.parts.budget is None else Allowance(self.parts.budget)
        run.task = self._task(run, session, self._work(run, record, denial))
        run.limit_time()

    def _task(self, run: MetricTask, session: JudgingSession, work: Coroutine[Any, Any, _T]) -> asyncio.Task[_T]:
        # The task gets a copy of this context. If the task opened it, a task that is destroyed before its end would close it
        # in another context, which OpenTelemetry logs as an error.
        with suppressed(), judging(replace(session, meter=run.meter, allowance=run.allowance)):
            return asyncio.get_running_loop().create_task(work)

    def close(self) -> None:
        for call in (self._own, self._fallback, self._screen):
            if call is not None:
                call.close()

    async def _work(self, run: MetricTask, record: RagRecord, denied: Denial | None) -> None:
        while True:
            denial = denied
            if denial is None and run.allowance is not None and self._is_paid_for:
                denial = run.allowance.spent()
            if denial is None:
                outcome = await outcome_of(self._own, record)
                if isinstance(outcome, MetricFailure) and run.outcome is None and run.allowance is not None:
                    denial = run.allowance.denial
            if denial is None or denial.wait is None or not self.parts.waits_for_budget or run.allowance is None:
                break
            run.stop_timer()
            await asyncio.sleep(max(denial.wait, _PACE))
            run.allowance.denial = None
            run.limit_time()
        if denial is not None:
            outcome = await self._fall_back(run, record, denial.limit)
        run.end(await self.parts.redaction.outcome(outcome))

    async def _fall_back(self, run: MetricTask, record: RagRecord, limit: str) -> Outcome:
        """The outcome without the metric's own judge, because of this limit of the budget."""
        if isinstance(run.screened, Score):
            return replace(run.screened, fallback=BUDGET_EXHAUSTED)
        if self._fallback is None:
            return self._unscored(record, BUDGET_EXHAUSTED, detail=limit)
        without_budget()  # the fallback's judge is the user's choice for when there is no budget
        outcome = await outcome_of(self._fallback, record)
        return replace(outcome, fallback=BUDGET_EXHAUSTED) if isinstance(outcome, Score) else outcome

    def _unscored(self, record: RagRecord, reason: str, detail: str | None = None) -> NotApplicable:
        """The metric's own reason comes first: it would not have applied in any case."""
        if isinstance(self._metric, Screening):
            own, error = call_guarded(self._metric.screen, record)
            if error is not None:
                self.parts.log.failed("screen", error)
            elif isinstance(own, NotApplicable):
                return own
        return NotApplicable(reason=reason, detail=detail)


@dataclass(kw_only=True, slots=True, eq=False)
class MetricTask:
    """One metric at work on one record."""

    runner: MetricRunner
    screened: Outcome | None = None
    """What the embedded judge says, where the judge is asked about a share of the answers."""
    outcome: Outcome | None = None
    """None as long as it runs."""
    seconds: float = 0.0
    """How long it took."""
    usage: Usage | None = None
    """What it has spent, if anything; None as long as it runs."""
    allowance: Allowance | None = None
    """None where no budget limits it."""
    meter: UsageMeter = field(default_factory=UsageMeter)
    ended: asyncio.Future[None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    """Done when there is an outcome."""
    task: asyncio.Task[Any] | None = None
    timer: asyncio.TimerHandle | None = None
    began: float = field(default_factory=time.perf_counter)

    def limit_time(self) -> None:
        """From now on it may take the time of a run, before it is cancelled."""
        self.stop_timer()
        if self.outcome is None:
            self.began, timeout = time.perf_counter(), self.runner.parts.timeout
            failure = MetricFailure(error_type="timeout", message=f"no outcome within {timeout:g} s")
            self.timer = asyncio.get_running_loop().call_later(timeout, self.cancel, failure)

    def stop_timer(self) -> None:
        if self.timer is not None:
            self.timer.cancel()

    def end(self, outcome: Outcome) -> None:
        """Take the outcome, unless there is one already."""
        if self.outcome is not None:
            return
        self.seconds = time.perf_counter() - self.began
        ended = outcome if self.screened is None else beside_screen(outcome, self.screened)
        if self.meter.total != Usage():
            self.usage = self.meter.total
            if ended.usage is None:
                ended = replace(ended, usage=self.usage)
        self.outcome = ended
        self.stop_timer()
        self.ended.set_result(None)
        _, error = call_guarded(self.runner.parts.on_end, self, outcome)
        if error is not None:
            self.runner.parts.log.failed("self_metrics", error)

    def cancel(self, outcome: Outcome) -> None:
        """End it with this outcome, if it has not ended, and let what works on it know."""
        if self.outcome is None:
            self.end(outcome)
            if self.task is not None:
                self.task.cancel()
