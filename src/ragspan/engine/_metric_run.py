"""Runs metrics, and turns whatever comes of it into outcomes.

Guarantees:
- A run has exactly one outcome. What the metric raises, `SystemExit` included, what it returns that is no outcome, and
  its silence until the timeout become a `MetricFailure`.
- Nobody waits for a run that has timed out. It is cancelled, but may swallow that.
- Where the budget does not allow what the metric's judge wants to ask, the fallback comes at once, in the same run. What was
  spent until then stays on the account and on the outcome.
- A metric that keeps on hanging holds a bounded number of tasks or threads: with so many runs lost, that is, timed out
  without having ended, it is not run again until one of them ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
import inspect
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from ragspan.engine._judges import are_cpu_bound, spenders_of, with_judge
from ragspan.engine._threads import DaemonThreads, call_guarded, run_in_loop
from ragspan.engine.budget import RunAllowance
from ragspan.engine.helper.client import HelperUnavailable
from ragspan.engine.helper.scoring import HelperScoring
from ragspan.judges.session import JudgingSession, UsageMeter, judging, lift_limits
from ragspan.metrics.base import Metric, Screening
from ragspan.outcomes import MetricFailure, NotApplicable, Outcome, Score, Usage
from ragspan.records import RagRecord
from ragspan.telemetry.suppress import suppressed

if TYPE_CHECKING:
    from ragspan.engine._scoring import RecordScorer

_Work: TypeAlias = "asyncio.Task[None] | Future[Any]"

_MAX_THREADS = 16  # of one metric
_MAX_MESSAGE = 500  # characters
_MAX_TYPE = 100
BUDGET_EXHAUSTED = "budget_exhausted"


class MetricRunner:
    """Starts runs of one metric in the running event loop.

    Args:
        metric: with `async def score`, or a plain `def score`, which is called in a thread.
        scorer: of whose records; it is told of each run that has ended.
        concurrency: records that are scored at the same time.
    """

    def __init__(self, metric: Metric, scorer: RecordScorer, *, concurrency: int) -> None:
        self.name = metric.name
        self._metric = metric
        self._scorer = scorer
        self._is_paid_for = scorer.budget is not None and any(spenders_of(metric))
        threads: DaemonThreads | None = None
        # Twice the concurrency: runs that need a moment to clean up after their cancellation are no sign of trouble.
        self._max_lost = 2 * max(concurrency, _MAX_THREADS)
        if not inspect.iscoroutinefunction(metric.score):
            self._max_lost = min(concurrency, _MAX_THREADS)  # with all threads lost, waiting for one is pointless
            threads = DaemonThreads(self._max_lost, name=f"ragspan-{metric.name}")
        fallback = None if scorer.fallback_judge is None else with_judge(metric, scorer.fallback_judge)
        self._own = _Call(metric, threads or scorer.judge_threads, scorer.helper)
        self._fallback = None if fallback is None else _Call(fallback, threads or scorer.judge_threads, scorer.helper)
        self._lost: set[_Work] = set()

    def skip(self, record: RagRecord, reason: str) -> MetricTask:
        """A run that has ended without the metric: its own reason why it does not apply, if it has one, or this one."""
        run = MetricTask(name=self.name, on_end=self._scorer.run_ended, lost=self._lost)
        run.end(self._unscored(record, reason))
        return run

    def start(self, record: RagRecord, session: JudgingSession, *, is_anchor: bool = False) -> MetricTask:
        """Begin to score the record.

        Args:
            record: what is scored.
            session: of the record, which its metrics share.
            is_anchor: whether it is there to watch the judge; no fallback stands in for that.
        """
        run = MetricTask(name=self.name, on_end=self._scorer.run_ended, lost=self._lost, is_anchor=is_anchor)
        if len(self._lost) >= self._max_lost:
            message = (
                f"{len(self._lost)} earlier runs have not ended since their timeout; until one does, none is started"
            )
            run.end(MetricFailure(error_type="stuck", message=message))
            return run
        # The task gets a copy of this context. Were it opened and closed inside, a run that is let go of before its end
        # would have it closed from outside, which OpenTelemetry logs as an error.
        budget = self._scorer.budget
        run.allowance = None if budget is None else RunAllowance(budget)
        with suppressed(), judging(replace(session, meter=run.meter, allowance=run.allowance)):
            run.task = asyncio.get_running_loop().create_task(self._work(run, record))
        return run

    def close(self) -> None:
        for call in (self._own, self._fallback):
            if call is not None:
                call.close()

    async def _work(self, run: MetricTask, record: RagRecord) -> None:
        budget = self._scorer.budget
        limit = budget.spent_limit() if budget is not None and self._is_paid_for else None
        if limit is None:
            outcome = await outcome_of(self._own, run, record)
            if run.allowance is not None and isinstance(outcome, MetricFailure) and run.outcome is None:
                limit = run.allowance.denied_by
        if limit is not None:
            outcome = await self._fall_back(run, record, limit)
        run.end(await self._scorer.redaction.outcome(outcome))

    async def _fall_back(self, run: MetricTask, record: RagRecord, limit: str) -> Outcome:
        """The outcome without the metric's own judge, because of this limit of the budget."""
        if self._fallback is None or run.is_anchor:
            return self._unscored(record, BUDGET_EXHAUSTED, detail=limit)
        lift_limits()  # the fallback's judge is the user's choice for when there is no budget
        outcome = await outcome_of(self._fallback, run, record)
        return replace(outcome, fallback=BUDGET_EXHAUSTED) if isinstance(outcome, Score) else outcome

    def _unscored(self, record: RagRecord, reason: str, detail: str | None = None) -> NotApplicable:
        """The metric's own reason comes first: it would not have applied in any case."""
        if isinstance(self._metric, Screening):
            own, error = call_guarded(self._metric.screen, record)
            if error is not None:
                self._scorer.note_error("screen", error)
            elif isinstance(own, NotApplicable):
                return own
        return NotApplicable(reason=reason, detail=detail)


class _Call:
    """Calls a metric where it belongs: in the helper, in a thread, or in the running event loop."""

    def __init__(self, metric: Metric, threads: DaemonThreads, helper: HelperScoring | None) -> None:
        self._metric = metric
        self._helper = helper
        self._number = None if helper is None else helper.add(metric)
        self._threads: DaemonThreads | None = None
        self._in_thread: Callable[[RagRecord], object] = metric.score
        if not inspect.iscoroutinefunction(metric.score):
            self._threads = threads
        elif any(bound := are_cpu_bound(metric)):
            # Who also waits for something, such as a classifier's own thread, does not keep others from computing.
            self._threads = threads if all(bound) else DaemonThreads(_MAX_THREADS, name=threads.name)
            self._in_thread = functools.partial(run_in_loop, metric.score)

    async def __call__(self, run: MetricTask, record: RagRecord) -> object:
        if self._helper is not None and self._number is not None:
            with contextlib.suppress(HelperUnavailable):
                return await self._helper.score(self._number, record)
        answer: object
        if self._threads is None:
            answer = self._metric.score(record)
        else:
            context = contextvars.copy_context()
            # The thread hands over what was raised as a value: asyncio's futures cannot hold every exception.
            run.thread_call = self._threads.submit(context.run, call_guarded, self._in_thread, record)
            answer, error = await asyncio.wrap_future(run.thread_call)
            if error is not None:
                raise error
        return await answer if inspect.isawaitable(answer) else answer

    def close(self) -> None:
        if self._threads is not None:
            self._threads.shutdown(cancel_futures=True)


@dataclass(kw_only=True, slots=True, eq=False)
class MetricTask:
    """One metric at work on one record."""

    name: str
    on_end: Callable[[MetricTask], None]
    lost: set[_Work]
    """Where it is from its timeout until it ends."""
    is_anchor: bool = False
    outcome: Outcome | None = None
    """None as long as it runs."""
    seconds: float = 0.0
    """How long it took."""
    usage: Usage | None = None
    """What it has spent, if anything; None as long as it runs."""
    task: asyncio.Task[None] | None = None
    thread_call: Future[Any] | None = None
    meter: UsageMeter = field(default_factory=UsageMeter)
    allowance: RunAllowance | None = None
    began: float = field(default_factory=time.perf_counter)

    def end(self, outcome: Outcome) -> None:
        """Take the outcome, unless there is one already."""
        if self.outcome is not None:
            return
        self.seconds = time.perf_counter() - self.began
        if self.meter.total != Usage():
            self.usage = self.meter.total
            if isinstance(outcome, Score) and outcome.usage is None:
                outcome = replace(outcome, usage=self.usage)
        self.outcome = outcome
        self.on_end(self)

    def cancel(self, outcome: Outcome) -> None:
        """End it with this outcome, if it has not ended, and let what works on it know."""
        if self.outcome is not None:
            return
        self.end(outcome)
        if self.task is None:
            return
        self.task.cancel()
        call = self.thread_call
        if call is None or call.done():
            self._count_as_lost(self.task)
        elif not call.cancel():  # a thread is at it; else the call has just left the line
            self._count_as_lost(call)

    def _count_as_lost(self, work: _Work) -> None:
        self.lost.add(work)
        work.add_done_callback(self.lost.discard)


async def outcome_of(score: Callable[..., object], *args: object) -> Outcome:
    """What a metric answers, or what the error means that it raises."""
    try:
        answer = score(*args)
        answer = await answer if inspect.isawaitable(answer) else answer
    except BaseException as error:  # noqa: BLE001 - a metric is the user's code: nothing it raises may go further
        return failure_of(error)
    if isinstance(answer, (Score, NotApplicable, MetricFailure)):
        return answer
    message = f"score() returned a {type(answer).__name__}, not a Score, NotApplicable or MetricFailure"
    return MetricFailure(error_type="invalid_outcome", message=message)


def failure_of(error: BaseException) -> MetricFailure:
    """What a metric's or a judge's error means."""
    own, _ = call_guarded(getattr, error, "error_type", None)
    error_type = own if isinstance(own, str) and own else type(error).__name__
    text, _ = call_guarded(str, error)
    outage, _ = call_guarded(getattr, error, "outage", None)
    return MetricFailure(error_type=error_type[:_MAX_TYPE], message=(text or "")[:_MAX_MESSAGE], outage=outage is True)
