"""The worst answers as the report shows them: texts cut to size, verdicts beside what they are about."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ragspan.datasets.report.guides import REASONS
from ragspan.datasets.report.legible import Excerpt, excerpt
from ragspan.datasets.report.marking import Piece, mark_claims
from ragspan.datasets.report.passages import ShownPassage, show_passages
from ragspan.datasets.results import EvaluatedRow
from ragspan.judges.base import ClaimVerdict, Rating, Vote
from ragspan.outcomes import NotApplicable, Outcome, Score

State: TypeAlias = Literal["pass", "fail", "scored", "not scored"]

_ALL_TEXTS = 1_000_000
"""Characters of all answers together: with them the page stays below 2 MB, the plots' library left out."""
_LARGEST_ANSWER = 24_000
_QUESTION_SHARE, _RESPONSE_SHARE = 0.1, 0.3
_QUESTION_AT_ONCE = 600
_EXPLANATION_AT_ONCE, _LONGEST_EXPLANATION = 300, 1_500
_CLAIMS_SHOWN = 40
_LONGEST_CLAIM = 400
_VERDICTS_SHOWN = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class ShownScore:
    """What one metric says of an answer."""

    metric: str
    state: State
    value: float | None = None
    threshold: float | None = None
    judge: str | None = None
    explanation: Excerpt | None = None
    """Of the score, or why there is none."""
    reason: str | None = None
    """Why there is no score, in one word."""
    figures: tuple[tuple[str, float], ...] = ()
    verdicts: tuple[str, ...] = ()
    """The single votes or ratings, where they differ."""

    @property
    def digits(self) -> int:
        """How many a reader has to see: rounded to two, a score that just fails can look as if it passed."""
        is_close = self.state == "fail" and None not in (self.value, self.threshold)
        return 4 if is_close and round(self.value or 0, 2) >= (self.threshold or 0) else 2


@dataclass(frozen=True, kw_only=True, slots=True)
class ShownClaim:
    """A claim with its verdict."""

    number: int
    """From 1, over all metrics; the marks in the response have it."""
    metric: str
    text: str
    is_supported: bool
    explanation: str | None = None
    probability: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ShownAnswer:
    """One answer with all that is known of it."""

    row: int
    record_id: str
    status: str
    question: Excerpt | None
    response: tuple[Piece, ...]
    omitted: int
    """Characters of the response that are left out."""
    passages: tuple[ShownPassage, ...] | None
    """None where they could not be observed."""
    passage_count: int
    scores: tuple[ShownScore, ...]
    claims: tuple[ShownClaim, ...]
    claim_count: int

    @property
    def failed(self) -> int:
        return sum(score.state == "fail" for score in self.scores)

    @property
    def labels(self) -> dict[str, tuple[float | None, State]]:
        """Value and state by metric: what a page filters and sorts by."""
        return {score.metric: (score.value, score.state) for score in self.scores}

    @property
    def mean(self) -> float:
        """Of its scores; 1 if it has none."""
        values = [score.value for score in self.scores if score.value is not None]
        return statistics.fmean(values) if values else 1.0


def show_answers(rows: Sequence[EvaluatedRow]) -> list[ShownAnswer]:
    """The answers, the worst first: those that fail most metrics, and of equals the lowest mean score."""
    room = min(_LARGEST_ANSWER, _ALL_TEXTS // max(1, len(rows)))
    return sorted((_shown(row, room) for row in rows), key=lambda answer: (-answer.failed, answer.mean, answer.row))


def _shown(evaluated: EvaluatedRow, room: int) -> ShownAnswer:
    record = evaluated.record
    question, response = record.question, (record.response or "").strip()
    shown_response = response[: int(room * _RESPONSE_SHARE)]
    claims = list(_claims(evaluated.outcomes))
    contexts = record.contexts
    left = int(room * (1 - _QUESTION_SHARE - _RESPONSE_SHARE))
    return ShownAnswer(
        row=evaluated.row,
        record_id=record.record_id,
        status=record.status,
        question=excerpt(question, at_once=_QUESTION_AT_ONCE, room=int(room * _QUESTION_SHARE)) if question else None,
        response=tuple(
            mark_claims(shown_response, {claim.number: claim.text for claim in claims if not claim.is_supported})
        ),
        omitted=len(response) - len(shown_response),
        passages=None if contexts is None else show_passages(contexts, evaluated.outcomes, room=left),
        passage_count=len(contexts or ()),
        scores=tuple(_score(metric, outcome) for metric, outcome in evaluated.outcomes.items()),
        claims=_worth_showing(claims),
        claim_count=len(claims),
    )


def _score(metric: str, outcome: Outcome) -> ShownScore:
    if isinstance(outcome, Score):
        return ShownScore(
            metric=metric,
            state=outcome.label or "scored",
            value=outcome.value,
            threshold=outcome.threshold,
            judge=outcome.judge,
            explanation=_explained(outcome.explanation),
            figures=tuple(_figures(outcome.details)),
            verdicts=_verdicts(outcome.evidence),
        )
    if isinstance(outcome, NotApplicable):
        told = [REASONS.get(outcome.reason), outcome.detail]
        return ShownScore(
            metric=metric,
            state="not scored",
            reason=outcome.reason,
            explanation=_explained("; ".join(filter(None, told))),
        )
    return ShownScore(
        metric=metric, state="not scored", reason=outcome.error_type, explanation=_explained(outcome.message)
    )


def _figures(details: Mapping[str, object]) -> Iterator[tuple[str, float]]:
    """What a metric gives besides, as far as it is a number: anyone can write one."""
    for name, value in details.items():
        if isinstance(value, (int, float)) and math.isfinite(value):
            yield name, value


def _explained(text: str | None) -> Excerpt | None:
    return excerpt(text, at_once=_EXPLANATION_AT_ONCE, room=_LONGEST_EXPLANATION) if text else None


def _verdicts(evidence: Sequence[object]) -> tuple[str, ...]:
    """Votes and ratings with their reasons. Those of a deterministic judge are all the same, and say nothing more."""
    counted = Counter(_verdict(item)[:_LONGEST_CLAIM] for item in evidence if isinstance(item, (Vote, Rating)))
    if len(counted) <= 1:
        return ()
    return tuple(
        f"{words} ({count} times)" if count > 1 else words for words, count in counted.most_common(_VERDICTS_SHOWN)
    )


def _verdict(item: Vote | Rating) -> str:
    words = f"rated {item.value:.2f}" if isinstance(item, Rating) else _GROUNDED[item.grounded]
    return f"{words}: {item.explanation}" if item.explanation else words


_GROUNDED = {True: "grounded", False: "not grounded"}


def _claims(outcomes: Mapping[str, Outcome]) -> Iterator[ShownClaim]:
    number = 0
    for metric, outcome in outcomes.items():
        for item in outcome.evidence if isinstance(outcome, Score) else ():
            if isinstance(item, ClaimVerdict):
                number += 1
                yield ShownClaim(
                    number=number,
                    metric=metric,
                    text=(item.claim or "")[:_LONGEST_CLAIM],
                    is_supported=item.supported,
                    explanation=item.explanation[:_LONGEST_CLAIM] if item.explanation else None,
                    probability=item.probability,
                )


def _worth_showing(claims: Sequence[ShownClaim]) -> tuple[ShownClaim, ...]:
    """Unsupported ones first to stay, in their own order."""
    chosen = sorted(claims, key=lambda claim: claim.is_supported)[:_CLAIMS_SHOWN]
    return tuple(sorted(chosen, key=lambda claim: claim.number))
