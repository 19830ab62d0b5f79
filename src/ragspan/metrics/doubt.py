"""How doubtful an answer is, by what the embedded judge says of it: one order over adherence and faithfulness."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from ragspan.judges.judge_protocols import NOT_APPLICABLE
from ragspan.outcomes import Asked, Label, MetricFailure, NotApplicable, Outcome, Score

Part: TypeAlias = Literal["doubtful", "rest"]
"""The answers that a judge is asked about because they are doubtful, and all others, of which it is asked about a random part."""
_WEIGHTS: Final[Mapping[str, float]] = {"context_adherence": 3.0, "faithfulness": 1.0}
"""Adherence is of the whole answer, and ranks better than the share of claims: `benchmarks/share.py`."""
DOUBTED: Final = frozenset(_WEIGHTS)
"""The metrics whose scores say how doubtful an answer is."""
USUAL_DOUBTS: Final = (
    *(0.03, 0.05, 0.07, 0.09, 0.11, 0.14, 0.17, 0.2, 0.22, 0.26),
    *(0.29, 0.33, 0.37, 0.42, 0.49, 0.89, 0.93, 0.94, 0.96, 0.98),
)
"""One in twenty of the answers that people judged lies between two of these: `benchmarks/share.py`."""
_FINDINGS: Final = 0.75
"""Where the doubt of the answers that fail begins."""


def doubt_of(outcomes: Mapping[str, Outcome]) -> float | None:
    """From 0 (none) to 1; None if none of `DOUBTED` applies, such as to an answer without contexts.

    Answers that fail come first, since a fail names what it found; then those of low scores. Where the judge cannot tell, that counts
    as a score in the middle.
    """
    doubts: list[tuple[float, float]] = []
    fails = False
    for name, weight in _WEIGHTS.items():
        outcome = outcomes.get(name)
        if isinstance(outcome, Score):
            doubts.append((weight, 1 - outcome.value))
            fails = fails or outcome.label == "fail"
        elif outcome is not None and _cannot_tell(outcome):
            doubts.append((weight, 0.5))
    if not doubts:
        return None
    doubt = sum(weight * one for weight, one in doubts) / sum(weight for weight, _ in doubts)
    return _FINDINGS + (1 - _FINDINGS) * doubt if fails else _FINDINGS * doubt


def judged(outcome: Outcome, asked: Asked | None) -> tuple[Part, Label | None] | None:
    """The stratum of one metric's outcome, and the label by the judge that is asked about a share; None of an unknown one.

    None where the metric does not apply. A score without a label counts as an answer that nobody has labelled.
    """
    part: Part = "doubtful" if asked == "doubtful" else "rest"
    if not isinstance(outcome, Score):
        return (part, None) if _cannot_tell(outcome) else None
    return part, outcome.label if asked is not None and outcome.fallback is None else None


def _cannot_tell(outcome: Outcome) -> bool:
    """Whether the metric applies, and the judge could not give a score."""
    is_unsure = isinstance(outcome, NotApplicable) and outcome.reason in NOT_APPLICABLE
    return is_unsure or isinstance(outcome, MetricFailure)
