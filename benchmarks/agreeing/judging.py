"""Has answers scored by a judge that is named on the command line."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from agreeing.judgements import Judgement
from ragspan.judges import Judge, OpenAIJudge, OverlapJudge
from ragspan.judges.session import metered
from ragspan.metrics import Completeness, ContextAdherence, Faithfulness, FaithfulnessWithHHEM
from ragspan.outcomes import MetricFailure, NotApplicable, Outcome, Score
from ragspan.usage import Usage

Metric: TypeAlias = ContextAdherence | Faithfulness | FaithfulnessWithHHEM | Completeness


class UnknownJudgeError(ValueError):
    """No judge has this name."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Column:
    """One metric's values for the answers of a set, in their order."""

    metric: str
    threshold: float
    values: tuple[float, ...]
    """Where the judge cannot tell, half counts; another answer without a score counts 0."""
    scored: int
    """Answers with a score."""
    reasons: Mapping[str, int] = field(default_factory=dict)
    """Why the others have none."""


def metrics_of(judge: str, *, base_url: str | None = None) -> list[Metric]:
    """The metrics that people judged too, as a judge scores them.

    Args:
        judge: `overlap`, `openai:<model>`, or `hhem` and `hhem:<folder>`, which verifies the embedded judge's claims.
        base_url: of an OpenAI-compatible endpoint.

    Raises:
        UnknownJudgeError: it is none of these.
    """
    kind, _, model = judge.partition(":")
    if kind == "hhem":
        from ragspan_hhem import HHEMVerifier

        verifier = HHEMVerifier(model=model) if model else HHEMVerifier()
        return [FaithfulnessWithHHEM(OverlapJudge(), verifier)]
    asked: Judge
    if judge == "overlap":
        asked = OverlapJudge()
    elif kind == "openai" and model:
        asked = OpenAIJudge(model, base_url=base_url)
    else:
        raise UnknownJudgeError(f"a judge is overlap, openai:<model>, hhem or hhem:<folder>, not {judge!r}")
    return [ContextAdherence(asked), Faithfulness(asked), Completeness(asked)]


async def columns_of(
    metrics: Sequence[Metric], judgements: Sequence[Judgement], *, concurrency: int
) -> tuple[list[Column], Usage]:
    """What each of the metrics says of each answer, and what that took; completeness only where people rated it."""
    rated = any(judgement.completeness for judgement in judgements)
    wanted = [metric for metric in metrics if rated or not isinstance(metric, Completeness)]
    slots = asyncio.Semaphore(concurrency)

    async def outcomes_of(judgement: Judgement) -> list[Outcome]:
        async with slots:
            return [await metric.score(judgement.record) for metric in wanted]

    with metered() as meter:
        rows = await asyncio.gather(*map(outcomes_of, judgements))
    return [_column(metric, [row[place] for row in rows]) for place, metric in enumerate(wanted)], meter.total


def _column(metric: Metric, outcomes: Sequence[Outcome]) -> Column:
    return Column(
        metric=metric.name,
        threshold=metric.threshold,
        values=tuple(map(_value, outcomes)),
        scored=sum(isinstance(outcome, Score) for outcome in outcomes),
        reasons=Counter(_reason(outcome) for outcome in outcomes if not isinstance(outcome, Score)),
    )


def _value(outcome: Outcome) -> float:
    if isinstance(outcome, Score):
        return outcome.value
    return 0.5 if isinstance(outcome, NotApplicable) and outcome.reason == "cannot_tell" else 0.0


def _reason(outcome: Outcome) -> str:
    if isinstance(outcome, Score):
        raise TypeError("a score needs no reason")
    return outcome.error_type if isinstance(outcome, MetricFailure) else outcome.reason
