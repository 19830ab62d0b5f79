"""Decides what of a record may leave the process besides its scores, for all emitters and writers.

Without content nothing that leaves quotes a text: an explanation gives counts and places, which are made here from the
score's evidence, for all metrics and judges. `Score.explanation` itself stays as the judge wrote it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

from ragspan.arguments import FLAG, Rule
from ragspan.config import BOOLEANS, CaptureContent, ContentPlace, Settings, variable
from ragspan.judges.judge_protocols import ClaimVerdict, Rating, Vote
from ragspan.outcomes import Score
from ragspan.telemetry.values import clean_name

MAX_DIMENSION_VALUES = 50
"""Values of one dimension in each process's metrics. Each value is a time series of its own."""
_MAX_EXPLANATION_CHARS = 1000
HiddenContent: TypeAlias = Literal["inputs", "outputs", "documents"]
_HIDING: Mapping[str, tuple[HiddenContent, ...]] = {
    **dict.fromkeys((f"OPENINFERENCE_HIDE_INPUT{rest}" for rest in ("S", "_MESSAGES", "_TEXT")), ("inputs",)),
    **dict.fromkeys((f"OPENINFERENCE_HIDE_OUTPUT{rest}" for rest in ("_MESSAGES", "_TEXT")), ("outputs",)),
    "OPENINFERENCE_HIDE_OUTPUTS": ("outputs", "documents"),  # documents are the output of a search
    "OPENINFERENCE_HIDE_RETRIEVAL_DOCUMENTS": ("documents",),
}
"""The kinds of text that OpenInference's variables hide."""
# `"false"` is true to Python, and would send users' texts.
_CAPTURE_CONTENT = Rule(
    "True, False, 'spans' or 'events'", lambda value: isinstance(value, bool) or value in get_args(ContentPlace)
)


@dataclass(kw_only=True, eq=False, repr=False)
class ContentPolicy:
    """A base for emitters, which are dataclasses: what of the users' texts they may send.

    Raises:
        ConfigurationError: an argument or the environment has a value that is not allowed.
    """

    capture_content: CaptureContent | None = None
    """Send questions, contexts, responses, prompts, errors' messages and users' ids; `"spans"` or `"events"` only there. None reads
    `RAGSPAN_CAPTURE_CONTENT`, or `OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT`; without both, nothing is sent. What
    `OPENINFERENCE_HIDE_*` names stays hidden."""
    explanations: bool | None = None
    """True sends the judges' explanations unchanged, with quotes of users' texts; False sends none. None reads
    `RAGSPAN_EXPLANATIONS`; without it, explanations have quotes where content goes, and counts and places elsewhere."""

    def __post_init__(self) -> None:
        settings = Settings.from_environment()
        hiding = [name for name in _HIDING if BOOLEANS.get((variable(name) or "no").lower(), True)]
        self._hidden = {kind for name in hiding for kind in _HIDING[name]}
        if self.capture_content is None:
            self.capture_content = settings.capture_content or False
        if self.explanations is None:
            self.explanations = settings.explanations
        _CAPTURE_CONTENT.check_fields(self, "capture_content")
        FLAG.or_none().check_fields(self, "explanations")

    def allows(self, place: ContentPlace = "spans", *, hidden_as: HiddenContent | None = None) -> bool:
        """Whether a user's text may go there; `hidden_as` is OpenInference's kind of text."""
        return self.capture_content in {True, place} and hidden_as not in self._hidden

    def explanation(self, score: Score, place: ContentPlace = "spans") -> str | None:
        """The explanation of a score for this place, at most 1000 characters, if there is one. A backend's own scores count as spans."""
        if self.explanations is False:
            return None
        text = score.explanation if self.explanations or self.allows(place) else without_quotes(score)
        return clean_name(text, _MAX_EXPLANATION_CHARS) if text else None


def without_quotes(score: Score) -> str | None:
    """Where support was lost, and counts and places from the evidence, if it is of one known kind; None without both."""
    evidence: Sequence[Any] = score.evidence
    counts: str | None = None
    match evidence[0] if len({type(one) for one in evidence}) == 1 else None:
        case ClaimVerdict():
            unit = "sentence" if score.judge == "overlap" else "claim"  # the embedded judge's claims are sentences
            counts = _counted("claims unsupported", [one.verdict == "unsupported" for one in evidence], unit)
            if any(one.verdict == "unsure" for one in evidence):
                counts += f"; {_counted('unsure', [one.verdict == 'unsure' for one in evidence], unit)}"
        case Vote() | Rating() if score.judge == "overlap":
            pass  # they are all equal, so to count them says nothing
        case Vote():
            counts = f"{sum(vote.grounded for vote in evidence)} of {len(evidence)} votes find the response grounded"
        case Rating():
            counts = f"ratings: {_joined([f'{rating.value:.2g}' for rating in evidence])}"
        case object(index=int(), value=int() | float()):  # the rating of one context, from a judge or a metric
            by_place = sorted(evidence, key=lambda one: one.index)
            counts = _counted("contexts rated above 0", [one.value > 0 for one in by_place], "context")
    return " ".join(filter(None, [score.losses, counts])) or None


def _counted(what: str, found: Sequence[bool], unit: str) -> str:
    """How many were found, and their places from 1: "2 of 5 claims unsupported: sentences 2 and 4"."""
    places = [str(place) for place, is_found in enumerate(found, start=1) if is_found]
    which = f": {unit}{'s' if len(places) > 1 else ''} {_joined(places)}" if places else ""
    return f"{len(places)} of {len(found)} {what}{which}"


def _joined(words: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))
