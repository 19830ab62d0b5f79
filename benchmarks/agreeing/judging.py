"""Has answers scored by a judge that is named on the command line."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from agreeing.judgements import Judgement, JudgementSet
from ragspan.config import JudgeMode
from ragspan.judges import Judge, LLMJudge, OpenAIJudge, OverlapJudge
from ragspan.judges.session import JudgingSession, judging, session_of
from ragspan.metrics import Completeness, ContextAdherence, Faithfulness, FaithfulnessWithHHEM
from ragspan.outcomes import MetricFailure, NotApplicable, Outcome, Score
from ragspan.text.limits import SIZE_OF_TOKEN, size_of
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


def metrics_of(judge: str, *, base_url: str | None = None, mode: JudgeMode = "one_request") -> list[Metric]:
    """The metrics that people judged too, as a judge scores them.

    Args:
        judge: `overlap`, `openai:<model>`, or `hhem` and `hhem:<folder>`, which verifies the embedded judge's claims.
        base_url: of an OpenAI-compatible endpoint.
        mode: of a language model: all in one request, or thorough.

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
        asked = OpenAIJudge(model, base_url=base_url, mode=mode)
    else:
        raise UnknownJudgeError(f"a judge is overlap, openai:<model>, hhem or hhem:<folder>, not {judge!r}")
    return [ContextAdherence(asked), Faithfulness(asked), Completeness(asked)]


def expected_usage(metrics: Sequence[Metric], sets: Sequence[JudgementSet]) -> tuple[Usage, float | None]:
    """About what judging takes of a language model, and what it costs in dollars; None where the price is not known."""
    judges = [metric.judge for metric in metrics if isinstance(metric.judge, LLMJudge)]
    if not judges:
        return Usage(), 0.0
    texts = [
        [one.record.question or "", one.record.response or "", *(context.text for context in one.record.contexts or ())]
        for each in sets
        for one in each.judgements
    ]
    requests = 1 if judges[0].answers_together else len(metrics) + 1
    prompts = [sum(map(size_of, each)) // SIZE_OF_TOKEN + _RULES for each in texts]
    usage = Usage(
        requests=requests * len(texts), input_tokens=requests * sum(prompts), output_tokens=_REPLIES * len(texts)
    )
    return usage, None if judges[0].price is None else judges[0].price.of(usage)


_RULES, _REPLIES = 1_300, 1_500
"""Tokens of an answer besides its texts, with three polls: `judge_cost.py`."""


async def columns_of(
    metrics: Sequence[Metric],
    judgements: Sequence[Judgement],
    *,
    concurrency: int,
    on_answer: Callable[[], object] = lambda: None,
) -> tuple[list[Column], Usage]:
    """What each of the metrics says of each answer, and what that took; completeness only where people rated it."""
    rated = any(judgement.completeness for judgement in judgements)
    wanted = [metric for metric in metrics if rated or not isinstance(metric, Completeness)]
    slots = asyncio.Semaphore(concurrency)

    async def outcomes_of(judgement: Judgement) -> list[Outcome]:
        async with slots:
            for metric in wanted:  # as an engine does, so that one request asks it all
                metric.announce(judgement.record, session_of(judgement.record))
            found = [await metric.score(judgement.record) for metric in wanted]
            on_answer()
            return found

    meter: list[Usage] = []
    with judging(JudgingSession(meter=meter)):
        rows = await asyncio.gather(*map(outcomes_of, judgements))
    return [_column(metric, [row[place] for row in rows]) for place, metric in enumerate(wanted)], sum(meter, Usage())


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
