"""What a model may reply: one schema for all tasks, and the types that replies are read into.

One schema, because a provider that enforces schemas puts them ahead of the messages: with a schema for each task no two
tasks would begin alike, and nothing would come from the prompt cache. Its branches differ in their first key, which
OpenAI demands of alternatives.

Reading is strict. A reply that is not JSON, has another form, lacks or adds a field or leaves the menu of verdicts is no
reply, and never a "no".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Generic, Literal, Protocol, TypeVar

import msgspec

_T = TypeVar("_T")
_T_co = TypeVar("_T_co", covariant=True)


class Reply(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A part of a reply. The order of the fields is the order of writing: reasoning comes before the verdict."""


class Grounding(Reply, frozen=True):
    reasoning: str
    verdict: Literal["grounded", "not_grounded"]


class Coverage(Reply, frozen=True):
    """A rating."""

    reasoning: str
    value: Annotated[float, msgspec.Meta(ge=0, le=1)]


class ClaimFinding(Reply, frozen=True):
    number: int
    reasoning: str
    verdict: Literal["supported", "unsupported"]


class SourceFinding(Reply, frozen=True):
    number: int
    reasoning: str
    verdict: Literal["contexts", "document", "nothing"]
    document: int


class UsefulnessFinding(Reply, frozen=True):
    number: int
    reasoning: str
    verdict: Literal["useful", "not_useful"]


class RelevanceFinding(Reply, frozen=True):
    number: int
    reasoning: str
    verdict: Literal["full", "partial", "none"]


class SentencesFinding(Reply, frozen=True):
    number: int
    reasoning: str
    sentences: list[int]


class AnyForm(Protocol[_T_co]):
    """A branch of the schema, whatever stands there."""

    @property
    def key(self) -> str: ...

    def read(self, text: str) -> _T_co | None: ...


@dataclass(frozen=True, slots=True)
class Form(Generic[_T]):
    """One branch of the schema: the key that it stands under, and the type of what stands there."""

    key: str
    kind: type[_T]

    def read(self, text: str) -> _T | None:
        """What the reply says, None if it is not of this form."""
        raw = _raw_answer(text, self.key)
        return None if raw is None else _decoded(raw, self.kind)


@dataclass(frozen=True, slots=True)
class ListForm(Generic[_T]):
    """A branch that holds a list of findings, each of which is valid or not by itself."""

    key: str
    kind: type[_T]

    def read(self, text: str) -> list[_T]:
        """The valid findings of the reply, none if it is not of this form."""
        raw = _raw_answer(text, self.key)
        items = None if raw is None else _decoded(raw, list[msgspec.Raw])
        findings = (_decoded(item, self.kind) for item in items or ())
        return [finding for finding in findings if finding is not None]


GROUNDING = Form("grounding", Grounding)
COMPLETENESS = Form("completeness", Coverage)
ANSWER_RELEVANCE = Form("answer_relevance", Coverage)
CLAIMS = Form("claims", list[str])
CLAIM_VERDICTS = ListForm("claim_verdicts", ClaimFinding)
STATEMENT_SOURCES = ListForm("statement_sources", SourceFinding)
CONTEXT_VERDICTS = ListForm("context_verdicts", UsefulnessFinding)
CONTEXT_RELEVANCE = ListForm("context_relevance", RelevanceFinding)
USED_SENTENCES = ListForm("used_sentences", SentencesFinding)


def _raw_answer(text: str, key: str) -> msgspec.Raw | None:
    reply = _decoded(_without_code_block(text.strip()), dict[str, dict[str, msgspec.Raw]])
    if reply is None or reply.keys() != {"answer"} or reply["answer"].keys() != {key}:
        return None
    return reply["answer"][key]


def _decoded(text: str | msgspec.Raw, kind: type[_T]) -> _T | None:
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None


def _without_code_block(text: str) -> str:
    """The inside of a reply that is one Markdown code block as a whole, as models write whom no schema holds."""
    opening, _, inside = text.partition("\n")
    return inside[:-3] if opening in _CODE_BLOCK_OPENINGS and inside.endswith("```") else text


_CODE_BLOCK_OPENINGS = {"```", "```json"}


def _object(**properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _list_of(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


def _one_of(*words: str) -> dict[str, Any]:
    return {"type": "string", "enum": list(words)}


_TEXT = {"type": "string"}
_NUMBER = {"type": "number"}  # without bounds, which some endpoints do not know; reading checks them
_INTEGER = {"type": "integer"}

REPLY_SCHEMA = _object(
    answer={
        "anyOf": [
            _object(grounding=_object(reasoning=_TEXT, verdict=_one_of("grounded", "not_grounded"))),
            _object(completeness=_object(reasoning=_TEXT, value=_NUMBER)),
            _object(answer_relevance=_object(reasoning=_TEXT, value=_NUMBER)),
            _object(claims=_list_of(_TEXT)),
            _object(
                claim_verdicts=_list_of(
                    _object(number=_INTEGER, reasoning=_TEXT, verdict=_one_of("supported", "unsupported"))
                )
            ),
            _object(
                statement_sources=_list_of(
                    _object(
                        number=_INTEGER,
                        reasoning=_TEXT,
                        verdict=_one_of("contexts", "document", "nothing"),
                        document=_INTEGER,
                    )
                )
            ),
            _object(
                context_verdicts=_list_of(
                    _object(number=_INTEGER, reasoning=_TEXT, verdict=_one_of("useful", "not_useful"))
                )
            ),
            _object(
                context_relevance=_list_of(
                    _object(number=_INTEGER, reasoning=_TEXT, verdict=_one_of("full", "partial", "none"))
                )
            ),
            _object(used_sentences=_list_of(_object(number=_INTEGER, reasoning=_TEXT, sentences=_list_of(_INTEGER)))),
        ]
    }
)
