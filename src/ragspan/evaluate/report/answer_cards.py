"""The worst answers as the report shows them: texts cut to size, verdicts beside what they are about."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from ragspan.evaluate.report.risk_signs import REASONS
from ragspan.evaluate.rows import EvaluatedRow
from ragspan.judges.claim_places import ResponsePlace, locate
from ragspan.judges.judge_protocols import ClaimVerdict, ContextVerdict
from ragspan.metrics import ChunkAttribution, ChunkUtilization, ContextRelevance, JudgedContext
from ragspan.outcomes import NotApplicable, Outcome, Score
from ragspan.records import RagRecord, RetrievedContext
from ragspan.text.limits import fair_limit

State: TypeAlias = Literal["pass", "fail", "scored", "not scored"]
Numbered: TypeAlias = Sequence[tuple[int, ClaimVerdict]]
"""Claims with their numbers, from 1 over all metrics."""

CONTEXTS_SHOWN = 20
_ALL_TEXTS = 600_000
"""Characters of all answers together: with them, and the list of failing answers, the page stays below 2 MB."""
_LARGEST_ANSWER = 24_000
_QUESTION_SHARE, _RESPONSE_SHARE, _CONTEXTS_SHARE = 0.1, 0.3, 0.6
_CLAIMS_SHOWN = 40
_GIST = 300  # characters
_LONGEST_EXPLANATION = 1_500  # characters
_ORDER = ("unsupported", "unsure", "supported")


class Excerpt(NamedTuple):
    """The beginning of a text, which the page shows."""

    text: str
    omitted: int = 0
    """Characters that the page leaves out after that."""


class ShownScore(NamedTuple):
    """What one metric says about an answer."""

    metric: str
    state: State
    explanation: Excerpt
    """Of the score, or why there is none."""
    score: Score | None = None
    reason: str | None = None
    """Why there is no score, in one word."""

    @property
    def value(self) -> float | None:
        return self.score.value if self.score else None


class ContextNote(NamedTuple):
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
    """Whether all claims that it makes are supported; None where it makes none, or the judge is unsure of the first."""
    link: str | None = None
    """To its support: `3-120` is the text of context 3 from character 120 on, `claim-2` a claim's verdict."""


class ShownContext(NamedTuple):
    """A context as the report shows it."""

    number: int
    """Its place in the prompt, from 1."""
    context: RetrievedContext
    excerpt: Excerpt
    findings: Sequence[ContextNote]
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
    question: Excerpt
    response: Sequence[Piece]
    omitted: int
    """Characters of the response that are left out."""
    contexts: Sequence[ShownContext]
    scores: Sequence[ShownScore]
    claims: Numbered
    claim_count: int
    same: Sequence[int] = ()
    """Further rows with the same response."""

    @property
    def gist(self) -> str:
        """The beginning of the response."""
        return "".join(piece.text for piece in self.response)[:_GIST]

    @property
    def reason(self) -> str:
        """Why the answer fails: of the first metric that it fails with the lowest score."""
        failing = [score for score in self.scores if score.state == "fail"]
        worst = min(failing, key=lambda score: score.value or 0.0, default=None)
        return "" if worst is None else worst.explanation.text[:_GIST]

    @property
    def labels(self) -> dict[str, tuple[float | None, State]]:
        """Value and state by metric: what a page filters and sorts by."""
        return {score.metric: (score.value, score.state) for score in self.scores}


def show_answers(rows: Sequence[EvaluatedRow]) -> list[ShownAnswer]:
    """The answers, the worst first, and each response once."""
    groups: dict[str, list[EvaluatedRow]] = {}
    for row in sorted(rows, key=lambda row: row.badness):
        response = " ".join((row.record.response or "").split())
        groups.setdefault(response or f"row {row.row}", []).append(row)
    room = min(_LARGEST_ANSWER, _ALL_TEXTS // max(1, len(groups)))
    return [_show(worst, room, same=[row.row for row in others]) for worst, *others in groups.values()]


def _show(row: EvaluatedRow, room: int, *, same: Sequence[int]) -> ShownAnswer:
    record = row.record
    response = _excerpt(record.response, room * _RESPONSE_SHARE)
    claims = list(enumerate((item for _, item in _evidence(row.outcomes) if isinstance(item, ClaimVerdict)), start=1))
    unsupported_first = sorted(claims, key=lambda numbered: _ORDER.index(numbered[1].verdict))
    kept = sorted(unsupported_first[:_CLAIMS_SHOWN], key=lambda numbered: numbered[0])
    contexts = show_contexts(record.contexts or (), row.outcomes, room=int(room * _CONTEXTS_SHARE))
    pieces, contexts = mark_claims(kept, response.text, contexts)
    return ShownAnswer(
        row=row.row,
        record=record,
        question=_excerpt(record.question, room * _QUESTION_SHARE),
        response=pieces,
        omitted=response.omitted,
        contexts=contexts,
        scores=[_score(metric, outcome) for metric, outcome in row.outcomes.items()],
        claims=kept,
        claim_count=len(claims),
        same=same,
    )


def _evidence(outcomes: Mapping[str, Outcome]) -> Iterator[tuple[str, object]]:
    """Of all scores, with their metrics."""
    for metric, outcome in outcomes.items():
        for item in outcome.evidence if isinstance(outcome, Score) else ():
            yield metric, item


def _excerpt(text: str | None, room: float) -> Excerpt:
    """The first `room` characters of a text."""
    text, size = (text or "").strip(), int(room)
    return Excerpt(text[:size], max(len(text) - size, 0))


def _score(metric: str, outcome: Outcome) -> ShownScore:
    if isinstance(outcome, Score):
        return ShownScore(
            metric, outcome.label or "scored", _excerpt(outcome.explanation, _LONGEST_EXPLANATION), outcome
        )
    if isinstance(outcome, NotApplicable):
        reason, words = outcome.reason, "; ".join(filter(None, [REASONS.get(outcome.reason), outcome.detail]))
    else:
        reason, words = outcome.error_type, outcome.message
    return ShownScore(metric, "not scored", _excerpt(words, _LONGEST_EXPLANATION), reason=reason)


# Claims ---------------------------------------------------------------------------------------------------------------


def mark_claims(
    claims: Numbered, response: str, contexts: Sequence[ShownContext]
) -> tuple[list[Piece], list[ShownContext]]:
    """The response in pieces, character by character, with the sentences that make claims, and the contexts with their support."""
    texts = [context.excerpt.text for context in contexts]
    made: dict[ResponsePlace, Piece] = {}
    supports: list[dict[ResponsePlace, Piece]] = [{} for _ in contexts]
    places = locate([claim.claim or "" for _, claim in claims], response, texts)
    # A sentence leads to its first claim that is not supported, or else to the support of its first one.
    by_verdict = sorted(zip(claims, places, strict=True), key=lambda found: _ORDER.index(found[0][1].verdict))
    for (number, claim), place in by_verdict:
        support = place.contexts if claim.supported else ()
        for at in support:
            _mark(supports[at.context], texts[at.context], ResponsePlace(at.start, at.end), number)
        link = f"{contexts[support[0].context].number}-{support[0].start}" if support else f"claim-{number}"
        if place.response is not None:
            is_supported = None if claim.verdict == "unsure" else claim.supported
            _mark(made, response, place.response, number, is_supported, link)
    marked = zip(contexts, texts, supports, strict=True)
    return _pieces(response, made), [context._replace(pieces=_pieces(text, held)) for context, text, held in marked]


def _mark(
    marks: dict[ResponsePlace, Piece],
    text: str,
    place: ResponsePlace,
    number: int,
    is_supported: bool | None = None,  # noqa: FBT001 - as the field of a piece
    link: str | None = None,
) -> None:
    piece = marks.get(place) or Piece(text[slice(*place)], place.start, (), is_supported, link)
    marks[place] = piece._replace(numbers=tuple(sorted((*piece.numbers, number))))


def _pieces(text: str, marks: Mapping[ResponsePlace, Piece]) -> list[Piece]:
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
    findings: defaultdict[int, list[ContextNote]] = defaultdict(list)
    for metric, item in _evidence(outcomes):
        if isinstance(item, (ContextVerdict, JudgedContext)):
            finding = _finding(metric, item)
            if finding.words not in {known.words for known in findings[item.index]}:  # two metrics may ask the same
                findings[item.index].append(finding)
    useful = {index for index, found in findings.items() if any(finding.is_useful for finding in found)}
    chosen = sorted(sorted(range(len(contexts)), key=lambda index: index not in useful)[:CONTEXTS_SHOWN])
    limit = fair_limit([len(contexts[index].text) for index in chosen], room)
    return [
        ShownContext(index + 1, contexts[index], _excerpt(contexts[index].text, limit), findings[index])
        for index in chosen
    ]


def _finding(metric: str, item: ContextVerdict | JudgedContext) -> ContextNote:
    if isinstance(item, ContextVerdict) or metric == ChunkAttribution.name:
        is_useful = item.useful if isinstance(item, ContextVerdict) else item.value > 0
        return ContextNote("useful" if is_useful else "not used", item.explanation, is_useful)
    words = {
        ContextRelevance.name: f"relevance {item.value:.2f}",
        ChunkUtilization.name: f"{item.value:.0%} of its text used",
    }
    return ContextNote(words.get(metric, f"{metric} {item.value:.2f}"), item.explanation)
