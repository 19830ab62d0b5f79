"""What of the users' texts may leave the process: the one place where emitters and writers ask.

Without content nothing that leaves quotes anybody: an explanation gives counts and places, which are read from the score's
evidence here for all metrics and judges. `Score.explanation` itself stays as the judge wrote it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar, get_args, runtime_checkable

from ragspan.arguments import FLAG, SECONDS, Rule, choice, whole
from ragspan.config import CaptureContent, ContentPlace, HiddenContent, Settings, SpanStyle, hidden_content
from ragspan.judges.base import ClaimVerdict, ContextVerdict, Rating, Vote
from ragspan.outcomes import Score
from ragspan.telemetry.dimensions import Dimensions
from ragspan.telemetry.values import MAX_TEXT_CHARS, bounded, well_formed

_T = TypeVar("_T")

_SHOWN_PLACES = 20
# `"false"` is true to Python, and would let users' texts out.
_CAPTURE_CONTENT = Rule(
    "True, False, 'spans' or 'events'", lambda value: isinstance(value, bool) or value in get_args(ContentPlace)
)
_EXPLANATIONS = Rule("True, False or None", FLAG.or_none().fits)
_CHARS = Rule(
    f"a whole number from 1 to {MAX_TEXT_CHARS} (explanations=False leaves them out)", whole(1, MAX_TEXT_CHARS).fits
)


@dataclass(frozen=True, kw_only=True, slots=True)
class ContentPolicy:
    """The policy that an emitter's arguments and the environment make together.

    Raises:
        ConfigurationError: an argument or the environment has a value that is not allowed.
    """

    capture_content: CaptureContent | None = None
    """Where users' texts may stand: True for everywhere, or only `"spans"` or `"events"`. None asks the environment."""
    explanations: bool | None = None
    """True writes explanations as they are, with quotes, and False writes none. None asks `RAGSPAN_EXPLANATIONS`; where that
    is not set either, explanations quote where content may stand, and give counts and places elsewhere."""
    max_explanation_chars: int = 1000
    """Where explanations are cut, 1 to 8192."""
    hidden: frozenset[HiddenContent] = field(default_factory=hidden_content)
    """What OpenInference's variables hide even where content is wanted."""

    def __post_init__(self) -> None:
        if self.capture_content is None or self.explanations is None:
            settings = Settings.from_environment()
            if self.capture_content is None:
                object.__setattr__(self, "capture_content", settings.capture_content)
            if self.explanations is None:
                object.__setattr__(self, "explanations", settings.explanations)
        _CAPTURE_CONTENT.check_fields(self, "capture_content")
        _EXPLANATIONS.check_fields(self, "explanations")
        _CHARS.check_fields(self, "max_explanation_chars")

    def allows(self, place: ContentPlace, *, hidden_as: HiddenContent | None = None) -> bool:
        """Whether a user's text may stand there; `hidden_as` says by what OpenInference would hide it."""
        return self.capture_content in {True, place} and hidden_as not in self.hidden

    def explanation(self, score: Score, place: ContentPlace = "spans") -> str | None:
        """What may be said there of how the score came about. A backend's own scores count as spans."""
        if self.explanations is False:
            return None
        text = score.explanation if self._quotes(place) else without_quotes(score)
        return self._fitted(text)

    def explanation_of_verdict(self, text: str | None) -> str | None:
        """The explanation of a single verdict, if it may quote: what it says besides is in the verdict."""
        return self._fitted(text) if self._quotes("spans") else None

    def _quotes(self, place: ContentPlace) -> bool:
        return self.allows(place) if self.explanations is None else self.explanations

    def _fitted(self, text: str | None) -> str | None:
        return well_formed(bounded(text, self.max_explanation_chars)) if text else None


@dataclass(frozen=True, kw_only=True, slots=True)
class EmitterOptions:
    """The options of `OTelEmitter`, which documents them.

    Raises:
        ConfigurationError: an option has a value that is not allowed.
    """

    score_wait: float
    spans: SpanStyle
    content: ContentPolicy
    dimensions: Dimensions
    openinference: bool

    def __post_init__(self) -> None:
        FLAG.check_fields(self, "openinference")  # `"false"` is true to Python
        choice(*get_args(SpanStyle)).check_fields(self, "spans")
        SECONDS.check_fields(self, "score_wait")


def without_quotes(score: Score) -> str | None:
    """What the evidence says in counts and places; None where it is of no kind that is known here."""
    if claims := _all_of(ClaimVerdict, score.evidence):
        is_sentences = score.judge == "overlap"  # what the embedded judge takes for claims
        found = [not claim.supported for claim in claims]
        return _counted("claims unsupported", found, unit="sentence" if is_sentences else "claim")
    if votes := _all_of(Vote, score.evidence):
        return f"{sum(vote.grounded for vote in votes)} of {len(votes)} votes find the response grounded"
    if ratings := _all_of(Rating, score.evidence):
        return f"ratings: {_joined([f'{rating.value:.2g}' for rating in ratings])}"
    if verdicts := _all_of(ContextVerdict, score.evidence):
        useful = {verdict.index: verdict.useful for verdict in verdicts}
        return _counted("contexts useful", [useful[index] for index in sorted(useful)], unit="context")
    if contexts := _all_of(_RatedContext, score.evidence):  # type: ignore[type-abstract]
        values = {context.index: context.value > 0 for context in contexts}
        return _counted("contexts rated above 0", [values[index] for index in sorted(values)], unit="context")
    return None


@runtime_checkable
class _RatedContext(Protocol):
    """The rating of one context, a judge's or a metric's."""

    index: int
    value: float


def _all_of(kind: type[_T], evidence: Sequence[object]) -> list[_T]:
    """The evidence, if all of it is of this kind; else nothing."""
    found = [one for one in evidence if isinstance(one, kind)]
    return found if len(found) == len(evidence) else []


def _counted(what: str, found: Sequence[bool], *, unit: str) -> str:
    """How many of what was looked at, and at which places, from 1: "2 of 5 claims unsupported: sentences 2 and 4"."""
    places = [str(place) for place, is_found in enumerate(found, start=1) if is_found]
    named = f": {unit}{'s' if len(places) > 1 else ''} {_joined(places)}" if places else ""
    return f"{len(places)} of {len(found)} {what}{named}"


def _joined(words: Sequence[str]) -> str:
    rest = len(words) - _SHOWN_PLACES
    shown = [*words[:_SHOWN_PLACES], f"{rest} more"] if rest > 0 else list(words)
    return " and ".join(filter(None, [", ".join(shown[:-1]), shown[-1]]))
