"""Grades the records that were made of some requests against what the requests were.

White space, the order of contexts and repeated ones do not count. A LlamaIndex passage may lack the metadata that the model saw
before it. An unfinished request is right unless it would be taken for a finished one. A second grade is strict: the texts as they
are, contexts in the order of the prompt, each once, and an unfinished request known as one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias, get_args

Fault: TypeAlias = Literal[
    "question", "contexts", "background", "response", "unfinished", "missed", "mixed up", "made up"
]
FAULTS: tuple[Fault, ...] = get_args(Fault)

_FIELDS: tuple[Fault, ...] = ("question", "contexts", "background", "response")
_MAX_SHOWN = 600


class Expected(Protocol):
    """What a test says of a record."""

    @property
    def question(self) -> str | None: ...
    @property
    def contexts(self) -> Sequence[str] | None: ...
    @property
    def background(self) -> Sequence[tuple[str, str]] | None:
        """Kind and text of the evidence beside the contexts; None where the test says nothing of it."""
        ...

    @property
    def response(self) -> str | None: ...
    @property
    def status(self) -> str: ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Seen:
    """A request as a library's evaluation would read it; question and response are what it would put in a prompt."""

    question: str | None
    contexts: tuple[str, ...] | None
    """None if the library says that it does not know them."""
    response: str | None
    background: tuple[str, ...] = ()
    is_unfinished: bool = False
    """The library says that the request failed or was left."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Graded:
    """One request."""

    faults: tuple[Fault, ...]
    """What was wrong; nothing if the request was captured right."""
    is_strictly_right: bool
    expected: Mapping[str, Any]
    seen: Mapping[str, Any] | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """The requests of a program, and what was seen beside them."""

    requests: tuple[Graded, ...]
    made_up: tuple[Mapping[str, Any], ...]
    """What would be scored although nobody asked it."""


def grade(expected: Iterable[Expected], seen: Iterable[Seen]) -> Comparison:
    """Grade what was seen of some requests; each is paired with what fits it best, in whatever order they came."""
    wanted, candidates = list(expected), [_Candidate(one) for one in seen]
    pairs = sorted(
        (candidate.distance(one), place, number)
        for place, one in enumerate(wanted)
        for number, candidate in enumerate(candidates)
    )
    partner: dict[int, int] = {}
    for _, place, number in pairs:
        if place not in partner and number not in partner.values():
            partner[place] = number
    requests = [
        _graded(one, candidates[partner[place]], wanted) if place in partner else _missed(one)
        for place, one in enumerate(wanted)
    ]
    spare = [one for number, one in enumerate(candidates) if number not in partner.values() and one.would_be_scored]
    return Comparison(requests=tuple(requests), made_up=tuple(_plain(one.seen) for one in spare))


class _Candidate:
    """What was seen, ready for comparisons."""

    def __init__(self, seen: Seen) -> None:
        self.seen = seen
        self._texts: dict[Fault, str] = {"question": words(seen.question or ""), "response": words(seen.response or "")}
        self._contexts = {words(context) for context in seen.contexts or ()}
        self._background = {words(text) for text in seen.background}

    @property
    def would_be_scored(self) -> bool:
        return all(self._texts.values()) and bool(self._contexts) and not self.seen.is_unfinished

    def faults(self, wanted: Expected) -> tuple[Fault, ...]:
        if wanted.status != "complete":
            told = self.seen.is_unfinished or not self._texts["response"]
            return () if told else ("unfinished",)
        return tuple(field for field in _FIELDS if not self.has(field, wanted))

    def distance(self, wanted: Expected) -> tuple[int, bool]:
        """How badly this fits; the question tells unfinished requests apart, too, though nothing hangs on it there."""
        other_question = wanted.status != "complete" and not self.has("question", wanted)
        return len(self.faults(wanted)) + other_question, not self.is_strictly(wanted)

    def has(self, field: Fault, wanted: Expected) -> bool:
        """Whether this field is that request's."""
        if field == "contexts":
            forms = [_forms(text) for text in wanted.contexts or ()]
            known = _background(wanted).union(*forms)
            return all(form & self._contexts for form in forms) and self._contexts <= known
        if field == "background":
            held = self._contexts | self._background
            return all(any(text in one for one in held) for text in _background(wanted))
        return self._texts[field] == words(_text(field, wanted) or "")

    def is_mixed_with(self, other: Expected, wanted: Expected) -> bool:
        """Whether something in a field that is wrong is another request's, and not the wanted one's."""
        wrong = self.faults(wanted)
        foreign = {form for text in other.contexts or () for form in _forms(text)}
        foreign -= {form for text in wanted.contexts or () for form in _forms(text)}
        return ("contexts" in wrong and bool(foreign & self._contexts)) or any(
            field in wrong and _text(field, other) and self.has(field, other) for field in self._texts
        )

    def is_strictly(self, wanted: Expected) -> bool:
        if wanted.status != "complete":
            return self.seen.is_unfinished and self.seen.question == wanted.question
        return (
            self.seen.question == wanted.question
            and _listed(self.seen.contexts) == _listed(wanted.contexts)
            and (wanted.background is None or list(self.seen.background) == [text for _, text in wanted.background])
            and (self.seen.response or None) == (wanted.response or None)
        )


def words(text: str) -> str:
    """The text with single spaces for white space."""
    return " ".join(text.split())


def _forms(text: str) -> set[str]:
    """A passage as it is, and without the metadata that LlamaIndex puts before it."""
    return {words(text), words(text.partition("\n\n")[2])} - {""}


def _background(wanted: Expected) -> set[str]:
    return {words(text) for _, text in wanted.background or ()}


def _text(field: Fault, wanted: Expected) -> str | None:
    return wanted.question if field == "question" else wanted.response


def _graded(wanted: Expected, candidate: _Candidate, all_wanted: Sequence[Expected]) -> Graded:
    faults = candidate.faults(wanted)
    if any(candidate.is_mixed_with(other, wanted) for other in all_wanted if other is not wanted):
        faults = (*faults, "mixed up")
    return Graded(
        faults=faults,
        is_strictly_right=not faults and candidate.is_strictly(wanted),
        expected=_plain_expected(wanted),
        seen=_plain(candidate.seen),
    )


def _missed(wanted: Expected) -> Graded:
    """Nobody can take for finished what nobody saw."""
    faults: tuple[Fault, ...] = ("missed",) if wanted.status == "complete" else ()
    return Graded(faults=faults, is_strictly_right=False, expected=_plain_expected(wanted), seen=None)


def _plain_expected(wanted: Expected) -> dict[str, Any]:
    return {
        "question": wanted.question,
        "contexts": _listed(wanted.contexts),
        "background": None if wanted.background is None else list(wanted.background),
        "response": wanted.response,
        "status": wanted.status,
    }


def _plain(seen: Seen) -> dict[str, Any]:
    return {
        "question": _brief(seen.question),
        "contexts": None if seen.contexts is None else list(map(_brief, seen.contexts)),
        "background": list(map(_brief, seen.background)),
        "response": _brief(seen.response),
        "is_unfinished": seen.is_unfinished,
    }


def _listed(texts: Sequence[str] | None) -> list[str] | None:
    return None if texts is None else list(texts)


def _brief(text: str | None) -> str | None:
    return text if text is None or len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}… ({len(text)} characters)"
