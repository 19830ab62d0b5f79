"""The worst answers as the report shows them: texts cut to size, verdicts beside what they are about."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from ragspan.datasets.report.signs import REASONS
from ragspan.datasets.results import EvaluatedRow
from ragspan.judges.base import ClaimVerdict, ContextVerdict, Rating, Vote
from ragspan.judges.claim_places import Place, locate
from ragspan.judges.text_limits import fair_limit
from ragspan.metrics import ChunkAttribution, ChunkUtilization, ContextRelevance, JudgedContext
from ragspan.outcomes import NotApplicable, Outcome, Score
from ragspan.records import RagRecord, RetrievedContext

State: TypeAlias = Literal["pass", "fail", "scored", "not scored"]
Numbered: TypeAlias = Sequence[tuple[int, ClaimVerdict]]
"""Claims with their numbers, from 1 over all metrics."""

CONTEXTS_SHOWN = 20
_ALL_TEXTS = 1_000_000
"""Characters of all answers together: with them the page stays below 2 MB."""
_LARGEST_ANSWER = 24_000
_QUESTION_SHARE, _RESPONSE_SHARE, _CONTEXTS_SHARE = 0.1, 0.3, 0.6
_CLAIMS_SHOWN, _VERDICTS_SHOWN, _LONGEST_VERDICT = 40, 5, 400
_LONGEST_EXPLANATION = 1_500  # characters


class Excerpt(NamedTuple):
    """The beginning of a text, which the page shows."""

    text: str
    omitted: int = 0
    """Characters that the page leaves out after that."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ShownScore:
    """What one metric says about an answer."""

    metric: str
    state: State
    explanation: Excerpt | None
    """Of the score, or why there is none."""
    score: Score | None = None
    reason: str | None = None
    """Why there is no score, in one word."""

    @property
    def value(self) -> float | None:
        return self.score.value if self.score else None

    @property
    def digits(self) -> int:
        """Two, or four where a score that just fails would otherwise look as if it passed."""
        threshold = self.score.threshold if self.score and self.state == "fail" else None
        return 4 if threshold is not None and round(self.value or 0, 2) >= threshold else 2

    @property
    def figures(self) -> list[tuple[str, float]]:
        """The score's further figures. Any metric can write something else there."""
        details = self.score.details if self.score else {}
        return [(name, value) for name, value in details.items() if _is_number(value)]

    @property
    def verdicts(self) -> list[str]:
        """The single votes or ratings, where they differ."""
        evidence = self.score.evidence if self.score else ()
        counts = Counter(_verdict(item)[:_LONGEST_VERDICT] for item in evidence if isinstance(item, (Vote, Rating)))
        if len(counts) < 2:  # noqa: PLR2004 - those of a deterministic judge are all the same
            return []
        common = counts.most_common(_VERDICTS_SHOWN)
        return [f"{words} ({count} times)" if count > 1 else words for words, count in common]


class Finding(NamedTuple):
    """What one metric says about one context."""

    words: str
    explanation: str | None = None
    is_useful: bool | None = None
    """Whether the response used the context; None where the metric measures something else."""


class Piece(NamedTuple):
    """A part of a response or a context."""

    text: str
    start: int = 0
    """Its place in the text as it is shown, in characters."""
    numbers: tuple[int, ...] = ()
    """Of the claims that it makes or supports."""
    is_supported: bool | None = None
    """Whether all claims are that it makes; None where it makes none."""
    link: str | None = None
    """To its support: `3-120` is the text of context 3 from character 120 on, `claim-2` a claim's verdict."""


class ShownContext(NamedTuple):
    """A context as the report shows it."""

    number: int
    """Its place in the prompt, from 1."""
    context: RetrievedContext
    excerpt: Excerpt
    findings: Sequence[Finding]
    pieces: Sequence[Piece] = ()
    """The excerpt, with what supports claims."""

    @property
    def is_useful(self) -> bool | None:
        """None where no metric says so."""
        verdicts = [finding.is_useful for finding in self.findings if finding.is_useful is not None]
        return any(verdicts) if verdicts else None


@dataclass(frozen=True, kw_only=True, slots=True)
class ShownAnswer:
    """One answer with all that is known about it."""

    row: int
    record: RagRecord
    question: Excerpt | None
    response: Sequence[Piece]
    omitted: int
    """Characters of the response that are left out."""
    contexts: Sequence[ShownContext]
    scores: Sequence[ShownScore]
    claims: Numbered
    claim_count: int

    @property
    def labels(self) -> dict[str, tuple[float | None, State]]:
        """Value and state by metric: what a page filters and sorts by."""
        return {score.metric: (score.value, score.state) for score in self.scores}


def show_answers(rows: Sequence[EvaluatedRow]) -> list[ShownAnswer]:
    """The answers, the worst first."""
    room = min(_LARGEST_ANSWER, _ALL_TEXTS // max(1, len(rows)))
    return [_show(row, room) for row in sorted(rows, key=lambda row: row.badness)]


def _show(row: EvaluatedRow, room: int) -> ShownAnswer:
    record, response = row.record, (row.record.response or "").strip()
    shown_response = response[: int(room * _RESPONSE_SHARE)]
    evidence = [item for outcome in row.outcomes.values() for item in _evidence_of(outcome)]
    claims = list(enumerate((item for item in evidence if isinstance(item, ClaimVerdict)), start=1))
    unsupported_first = sorted(claims, key=lambda numbered: numbered[1].supported)
    kept = sorted(unsupported_first[:_CLAIMS_SHOWN], key=lambda numbered: numbered[0])
    contexts = show_contexts(record.contexts or (), row.outcomes, room=int(room * _CONTEXTS_SHARE))
    pieces, contexts = mark_claims(kept, shown_response, contexts)
    return ShownAnswer(
        row=row.row,
        record=record,
        question=excerpt(record.question, int(room * _QUESTION_SHARE)) if record.question else None,
        response=pieces,
        omitted=len(response) - len(shown_response),
        contexts=contexts,
        scores=[_score(metric, outcome) for metric, outcome in row.outcomes.items()],
        claims=kept,
        claim_count=len(claims),
    )


def _evidence_of(outcome: Outcome) -> Sequence[object]:
    return outcome.evidence if isinstance(outcome, Score) else ()


def excerpt(text: str, room: int) -> Excerpt:
    """The first `room` characters of a text."""
    text = text.strip()
    return Excerpt(text[:room], max(len(text) - room, 0))


# Scores ---------------------------------------------------------------------------------------------------------------


def _score(metric: str, outcome: Outcome) -> ShownScore:
    if isinstance(outcome, Score):
        state, why = outcome.label or "scored", _explanation(outcome.explanation)
        return ShownScore(metric=metric, state=state, score=outcome, explanation=why)
    if isinstance(outcome, NotApplicable):
        reason, words = outcome.reason, "; ".join(filter(None, [REASONS.get(outcome.reason), outcome.detail]))
    else:
        reason, words = outcome.error_type, outcome.message
    return ShownScore(metric=metric, state="not scored", reason=reason, explanation=_explanation(words))


def _explanation(text: str | None) -> Excerpt | None:
    return excerpt(text, _LONGEST_EXPLANATION) if text else None


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and math.isfinite(value)


def _verdict(item: Vote | Rating) -> str:
    voted = {True: "grounded", False: "not grounded"}
    words = f"rated {item.value:.2f}" if isinstance(item, Rating) else voted[item.grounded]
    return f"{words}: {item.explanation}" if item.explanation else words


# Claims ---------------------------------------------------------------------------------------------------------------


def mark_claims(
    claims: Numbered, response: str, contexts: Sequence[ShownContext]
) -> tuple[list[Piece], list[ShownContext]]:
    """The response in pieces, character by character, with the sentences that make claims, and the contexts with their support."""
    shown = [context.excerpt.text for context in contexts]
    places = locate([claim.claim or "" for _, claim in claims], response, shown)
    made: dict[Place, list[tuple[int, ClaimVerdict, str]]] = defaultdict(list)
    supports: list[dict[Place, list[int]]] = [defaultdict(list) for _ in contexts]
    for (number, claim), place in zip(claims, places, strict=True):
        support = place.contexts if claim.supported else ()
        for at in support:
            supports[at.context][Place(at.start, at.end)].append(number)
        link = f"{contexts[support[0].context].number}-{support[0].start}" if support else f"claim-{number}"
        if place.response is not None:
            made[place.response].append((number, claim, link))
    marks = {place: _claim_piece(response, place, found) for place, found in made.items()}
    marked = [
        context._replace(
            pieces=_pieces(
                text, {place: Piece(text[slice(*place)], place.start, tuple(found)) for place, found in held.items()}
            )
        )
        for context, text, held in zip(contexts, shown, supports, strict=True)
    ]
    return _pieces(response, marks), marked


def _claim_piece(response: str, place: Place, found: Sequence[tuple[int, ClaimVerdict, str]]) -> Piece:
    """The sentence with all of its claims; it leads to the first that is not supported, or else to the first one's support."""
    _, worst, link = min(found, key=lambda claim: claim[1].supported)
    return Piece(response[slice(*place)], place.start, tuple(number for number, _, _ in found), worst.supported, link)


def _pieces(text: str, marks: Mapping[Place, Piece]) -> list[Piece]:
    """The text, with marks that do not overlap."""
    pieces: list[Piece] = []
    position = 0
    for place in sorted(marks):
        if place.start > position:
            pieces.append(Piece(text[position : place.start], position))
        pieces.append(marks[place])
        position = place.end
    return [*pieces, Piece(text[position:], position)] if position < len(text) else pieces


# Contexts -------------------------------------------------------------------------------------------------------------


def show_contexts(
    contexts: Sequence[RetrievedContext], outcomes: Mapping[str, Outcome], *, room: int
) -> list[ShownContext]:
    """At most `CONTEXTS_SHOWN` contexts in prompt order, with texts of at most `room` characters together.

    Of more contexts those are left out that were not useful, the last ones first. Long texts share the room equally.
    """
    findings = _findings(outcomes)
    useful = {index for index, found in findings.items() if any(finding.is_useful for finding in found)}
    chosen = sorted(sorted(range(len(contexts)), key=lambda index: index not in useful)[:CONTEXTS_SHOWN])
    limit = fair_limit([len(contexts[index].text) for index in chosen], room)
    return [
        ShownContext(index + 1, contexts[index], excerpt(contexts[index].text, limit), findings.get(index, ()))
        for index in chosen
    ]


def _findings(outcomes: Mapping[str, Outcome]) -> Mapping[int, Sequence[Finding]]:
    by_index: dict[int, list[Finding]] = defaultdict(list)
    for metric, outcome in outcomes.items():
        for item in _evidence_of(outcome):
            if not isinstance(item, (ContextVerdict, JudgedContext)):
                continue
            finding = _finding(metric, item)
            if finding.words not in {known.words for known in by_index[item.index]}:  # two metrics may ask the same
                by_index[item.index].append(finding)
    return by_index


def _finding(metric: str, item: ContextVerdict | JudgedContext) -> Finding:
    if isinstance(item, ContextVerdict) or metric == ChunkAttribution.name:
        is_useful = item.useful if isinstance(item, ContextVerdict) else item.value > 0
        return Finding("useful" if is_useful else "not used", item.explanation, is_useful)
    words = {
        ContextRelevance.name: f"relevance {item.value:.2f}",
        ChunkUtilization.name: f"{item.value:.0%} of its text used",
    }
    return Finding(words.get(metric, f"{metric} {item.value:.2f}"), item.explanation)
