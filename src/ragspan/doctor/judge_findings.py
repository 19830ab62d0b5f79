"""What one scored record shows of the judge."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from functools import reduce
from operator import add
from typing import Any

from ragspan.addresses import named_cause
from ragspan.doctor import Finding, finding
from ragspan.doctor.advice import Code
from ragspan.engine import Dropped
from ragspan.judges.judge_catalogue import EMBEDDED
from ragspan.judges.llm import LLMJudge
from ragspan.metrics.metric import Metric
from ragspan.outcomes import MetricFailure, Score, ScoredRecord
from ragspan.usage import Usage

_GROUNDEDNESS = ("context_adherence", "faithfulness")


def refused_by_judges(metrics: Iterable[Metric]) -> dict[str, str]:
    """What the endpoints of the metrics' judges have refused: their words by the parameter."""
    judges = (getattr(metric, "judge", None) for metric in metrics)
    return {name: words for judge in judges if isinstance(judge, LLMJudge) for name, words in judge.refused.items()}


def judged(judge: str, result: ScoredRecord | Dropped | None, seconds: float, refused: Mapping[str, str]) -> Finding:
    """One finding for all metrics: they have one judge."""
    if not isinstance(result, ScoredRecord):
        return finding("judge", "judge_not_asked", "skipped", f"{judge} was not asked, or did not answer in time")
    outcomes = result.outcomes
    failures = [outcome for outcome in outcomes.values() if isinstance(outcome, MetricFailure)]
    scores = [outcome for outcome in outcomes.values() if isinstance(outcome, Score)]
    if failures and not scores:
        failure = next((each for each in failures if each.error_type != "judge_unavailable"), failures[0])
        found = f"{judge} gave no answer: {failure.error_type}: {failure.message}"
        return finding("judge", _code_of(judge, failure), "failed", found, judge=judge, error_type=failure.error_type)
    usage = reduce(add, (outcome.usage for outcome in outcomes.values() if outcome.usage), Usage())
    found = f"{judge} answered in {seconds:.2f} s"
    if usage.requests or usage.input_tokens:
        price = "price unknown" if usage.usd is None else f"{usage.usd:.6f} USD"
        found += f" ({usage.input_tokens} tokens in, {usage.output_tokens} out, {price})"
    misjudged = [name for name in _GROUNDEDNESS if getattr(outcomes.get(name), "label", None) == "fail"]
    if misjudged:
        found += f", but failed an answer that its context states word for word ({', '.join(misjudged)})"
    if failures:
        found += f", but not for all metrics: {failures[0].error_type}: {failures[0].message}"
    found += "".join(
        f"; it goes without {name}, which the endpoint refuses ({words})" for name, words in refused.items()
    )
    facts: dict[str, Any] = {"seconds": round(seconds, 3), **dataclasses.asdict(usage), "refused": sorted(refused)}
    code: Code = "overlap_answered" if judge == EMBEDDED else "judge_answered"
    if misjudged or failures:
        code = "judge_fails_good_answer" if misjudged else "judge_partly_failed"
    return finding("judge", code, "warning" if misjudged or failures else "ok", found, judge=judge, **facts)


def _code_of(judge: str, failure: MetricFailure) -> Code:
    """What kept the judge from answering."""
    cause = named_cause(failure.message)
    if cause in {"untrusted", "refused"}:
        return "judge_untrusted" if cause == "untrusted" else "judge_refused"
    if failure.error_type in {"timeout", "APITimeoutError"}:
        return "overlap_timeout" if judge == EMBEDDED else "judge_timeout"
    return _BY_ERROR.get(failure.error_type, "judge_failed")


_BY_ERROR: Mapping[str, Code] = {"AuthenticationError": "judge_wrong_key", "InvalidVerdict": "judge_unreadable"}
