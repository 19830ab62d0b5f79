"""Calls a metric where it belongs, and says what its answer or its error means."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
import inspect
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeAlias

from ragspan.arguments import with_article
from ragspan.engine.helper.client import HelperClient, HelperUnavailable
from ragspan.engine.metric_judges import are_cpu_bound
from ragspan.engine.threads import DaemonThreads, call_guarded, run_in_loop
from ragspan.exceptions import JudgeError
from ragspan.judges.llm.errors import is_plain_outage, status_of
from ragspan.metrics.metric import Metric
from ragspan.outcomes import MetricFailure, NotApplicable, Outcome, Score
from ragspan.records import RagRecord
from ragspan.text.languages import languages_of
from ragspan.text.responses import is_refusal

MAX_THREADS = 16  # of one metric
_MAX_MESSAGE = 500  # characters
_MAX_TYPE = 100


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

    async def __call__(self, record: RagRecord, note_thread: Callable[[Future[Any]], None]) -> object:
        """What the metric answers. `note_thread` gets the call in a thread, if it is made in one."""
        if self._helper is not None and self._number is not None:
            with contextlib.suppress(HelperUnavailable):
                return await self._helper.score(self._number, record)
        answer: object
        if self._threads is None:
            answer = self._metric.score(record)
        else:
            context = contextvars.copy_context()
            # The thread hands over what was raised as a value: asyncio's futures cannot hold every exception.
            thread_call = self._threads.submit(context.run, call_guarded, self._in_thread, record)
            note_thread(thread_call)
            answer, error = await asyncio.wrap_future(thread_call)
            if error is not None:
                raise error
        return await answer if inspect.isawaitable(answer) else answer

    def close(self) -> None:
        if self._threads is not None:
            self._threads.shutdown(cancel_futures=True)


async def outcome_of(score: Callable[..., object], *args: object) -> Outcome:
    """What a metric answers, or what the error means that it raises."""
    try:
        answer = score(*args)
        answer = await answer if inspect.isawaitable(answer) else answer
    except BaseException as error:  # noqa: BLE001 - a metric is the user's code: nothing it raises may go further
        return failure_of(error)
    if isinstance(answer, (Score, NotApplicable, MetricFailure)):
        return answer
    message = f"score() returned {with_article(type(answer).__name__)}, not a Score, NotApplicable or MetricFailure"
    return MetricFailure(error_type="invalid_outcome", message=message)


def failure_of(error: BaseException) -> MetricFailure:
    """What a metric's or a judge's error means."""
    text, _ = call_guarded(str, error)
    message = (text or "")[:_MAX_MESSAGE]
    if isinstance(error, JudgeError):
        kind, outage = error.error_type, error.outage
    else:
        kind, outage = type(error).__name__, isinstance(error, Exception) and is_plain_outage(error)
    return MetricFailure(error_type=kind[:_MAX_TYPE], message=message, outage=outage, status=status_of(error))


About: TypeAlias = tuple[bool, str | None]
"""Whether a response is a refusal, and its language, as an ISO 639-1 code."""


def about_response(record: RagRecord) -> About:
    response = record.response or ""
    if not response.strip():
        return False, None
    contexts = [context.text for context in record.contexts or ()]
    return is_refusal(response), languages_of(response, contexts, record.question or "").response.code
