"""ragspan's metrics with `OpenAIJudge`, all at a time, as the engine runs them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace

from judging.job import KEY, MODEL, Answer
from judging.one_by_one import Judging
from ragspan import RagRecord
from ragspan.judges import Judge, OpenAIJudge
from ragspan.judges.session import JudgingSession
from ragspan.judges.session import judging as judging_session
from ragspan.metrics import Completeness, ContextAdherence, ContextUtilization, Faithfulness
from ragspan.metrics.metric import JudgedMetric
from ragspan.metrics.polled import PolledMetric
from ragspan.outcomes import Outcome, Score

METRICS: dict[str, Callable[[Judge], ContextAdherence | Completeness | ContextUtilization | Faithfulness]] = {
    "context_adherence": ContextAdherence,
    "completeness": Completeness,
    "context_utilization": ContextUtilization,
    "faithfulness": Faithfulness,
}


def judging(base_url: str) -> Judging:
    judges = {
        mode: OpenAIJudge(MODEL, base_url=base_url, api_key=KEY, mode=mode) for mode in ("one_request", "thorough")
    }

    async def values_of(answer: Answer, names: Sequence[str]) -> dict[str, float]:
        metrics = [made(name, judges) for name in names]
        record = RagRecord(question=answer.question, contexts=answer.passages, response=answer.response)
        with judging_session(JudgingSession(record=record)):
            outcomes = await asyncio.gather(*(metric.score(record) for metric in metrics))
        return {metric.name: value_of(outcome) for metric, outcome in zip(metrics, outcomes, strict=True)}

    return values_of


def made(name: str, judges: dict[str, OpenAIJudge]) -> JudgedMetric[Judge]:
    """The metric of a name such as `completeness/thorough` or `completeness/one_request/1`, with its mode and polls."""
    name, _, options = name.partition("/")
    mode, _, polls = options.partition("/")
    metric = METRICS[name](judges[mode])
    return replace(metric, polls=int(polls)) if polls and isinstance(metric, PolledMetric) else metric


def value_of(outcome: Outcome) -> float:
    if not isinstance(outcome, Score):
        raise TypeError(f"the endpoint's replies should make a score, not {outcome}")
    return outcome.value
