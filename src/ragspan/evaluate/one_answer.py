"""`ragspan.score`: one answer in, its scores out."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ragspan.config import settings_with
from ragspan.defaults import budget_from
from ragspan.engine import ScoringEngine
from ragspan.evaluate.evaluation import metrics_of
from ragspan.exceptions import ConfigurationError, RagspanError
from ragspan.judges.judge_catalogue import JudgeChoice
from ragspan.metrics.metric import Metric
from ragspan.outcomes import ScoredRecord
from ragspan.process import in_use
from ragspan.records import RagRecord


def score(
    *,
    question: str | None = None,
    contexts: str | Sequence[Any] | None = None,
    response: str | None,
    metrics: str | Iterable[str | Metric] | None = None,
    judge: JudgeChoice | None = None,
) -> ScoredRecord:
    """Score one answer. For many answers `ragspan.evaluate.evaluate` is faster, and waits where a judge is away.

        print(ragspan.score(question="How high is it?", contexts=["It is 330 m high."], response="It is 330 m high."))

    Inside a running event loop, as in a notebook, it works and blocks the loop: `ascore` leaves the loop free.

    Args:
        question: of the user.
        contexts: what the model was given: texts, dictionaries or documents of a framework; a text is a single one. None says
            that they are not known, an empty list that there were none.
        response: the answer that is scored.
        metrics: names (in a list, or separated by commas) and metrics; by default those of `configure`, else of `RAGSPAN_METRICS`.
        judge: of the metrics that are given by name; by default that of `configure`, else of `RAGSPAN_JUDGE`.

    Returns:
        The answer with the outcome of each metric: `scored.outcomes["faithfulness"]`. It prints as a table.

    Raises:
        ConfigurationError: an argument or a variable is wrong; the message names it.
    """
    scoring = ascore(question=question, contexts=contexts, response=response, metrics=metrics, judge=judge)
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(scoring)
    with ThreadPoolExecutor(1, "ragspan-score") as pool:  # no second event loop can run in this thread
        return pool.submit(contextvars.copy_context().run, asyncio.run, scoring).result()


async def ascore(
    *,
    question: str | None = None,
    contexts: str | Sequence[Any] | None = None,
    response: str | None,
    metrics: str | Iterable[str | Metric] | None = None,
    judge: JudgeChoice | None = None,
) -> ScoredRecord:
    """As `score`, for code that runs in an event loop: judges are asked in a thread of their own."""
    settings = settings_with(judge=judge)
    configured = in_use.configured.engine if in_use.configured else None
    is_configured = configured is not None and metrics is None and judge is None
    chosen = (
        list(configured.metrics)
        if is_configured and configured and configured.metrics
        else metrics_of(settings, metrics, judge)
    )
    if not chosen:
        raise ConfigurationError("metrics is empty: name one at least")
    record = RagRecord(
        question=question,
        contexts=[contexts] if isinstance(contexts, str) else contexts,
        response=response,
        framework="ragspan",
    )
    engine = ScoringEngine(
        metrics=chosen,
        budget=budget_from(settings),
        metric_timeout=settings.metric_timeout,
        judging="thread",
        score_unsampled=True,
        name="ragspan-score",
    )
    try:
        scored = await engine.score(record, sample=False)
    finally:
        await asyncio.to_thread(engine.shutdown, 0)
    if not isinstance(scored, ScoredRecord):
        raise RagspanError(f"the answer was not scored: {scored.reason}")
    return scored
