"""Reads what a model replies, in the forms that `tasks` lists.

Reading is strict. A reply is invalid, and never counts as a "no", if it is not JSON, has another form, lacks or adds a field,
or has a verdict that is not on the menu.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec

_T = TypeVar("_T")


class Reply(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A part of a reply. Models write the fields in this order, so the reasoning comes before the verdict."""


class NumberedFinding(Reply, frozen=True):
    """What a reply says about one of several numbered claims, statements or contexts."""

    number: int
    """From 1."""
    reasoning: str

    @property
    def index(self) -> int:
        return self.number - 1


@dataclass(frozen=True, slots=True)
class Form(Generic[_T]):
    """One branch of the schema."""

    key: str
    """The branch's only key."""
    kind: type[_T]
    """Of what stands under the key; in a list, of each item."""
    is_list: bool = False
    """A list holds findings, each of which is valid or invalid by itself."""

    def read(self, text: str, remark: str | None = None, *, numbers: Container[int] | None = None) -> list[_T]:
        """The valid answers in a reply, with a remark after their reasoning; none if the reply is not of this form.

        Args:
            text: the reply.
            remark: put after the reasoning of each answer.
            numbers: those that were asked for. A reply with another one, or with one of them more than once, has no answer at
                all: its model counts in another way, so the other verdicts may be about something else as well.
        """
        raw = _raw_answer(text, self.key)
        if raw is None:
            return []
        items = (_decoded(raw, list[msgspec.Raw]) or []) if self.is_list else [raw]
        if numbers is not None and _miscounts(items, numbers):
            return []
        answers = (_decoded(item, self.kind) for item in items)
        return [_remarked(answer, remark) for answer in answers if answer is not None]

    def problem_of(self, text: str, numbers: Container[int] | None = None) -> str:
        """What a reply is that holds no answer."""
        if _decoded(_reply_in(text), msgspec.Raw) is None:
            return PROSE
        raw = _raw_answer(text, self.key) if self.is_list and numbers is not None else None
        items = None if raw is None else _decoded(raw, list[msgspec.Raw])
        return MISCOUNTED if items and numbers is not None and _miscounts(items, numbers) else OTHER_JSON


class _Numbered(msgspec.Struct, frozen=True):
    number: int


def _miscounts(items: Iterable[msgspec.Raw], numbers: Container[int]) -> bool:
    found = [one.number for item in items if (one := _decoded(item, _Numbered)) is not None]
    return len(set(found)) < len(found) or any(number not in numbers for number in found)


_DO = "take a larger model, or a server that keeps replies to a JSON schema (docs/judges.md)"
PROSE = f"the judge's model replied with prose, not with the JSON that it was asked for: {_DO}"
OTHER_JSON = f"the judge's model replied with JSON of another form than it was asked for: {_DO}"
EMPTY = "the judge's model replied with nothing"
CUT_OFF = (
    "the reply was cut off at the model's length limit: allow longer replies (max_tokens or max_completion_tokens in "
    "extra_body=), give the server a larger context window (Ollama: OLLAMA_CONTEXT_LENGTH), or let the model reason less"
)
REFUSED = "the judge's model refused, or a filter of its provider took the reply away"
BROKEN_OFF = "the model's provider broke the reply off with an error"
THOUGHTS_ONLY = (
    "the judge's model replied with thoughts only (reasoning_content): give the server another parser of reasoning (vLLM and "
    "SGLang: --reasoning-parser), switch thinking off, or allow longer replies"
)
MISCOUNTED = f"the judge's model gave verdicts on numbers that it was not asked about, or several on one number: {_DO}"
PROBLEMS = frozenset({PROSE, OTHER_JSON, EMPTY, CUT_OFF, REFUSED, BROKEN_OFF, THOUGHTS_ONLY, MISCOUNTED})
"""Why a reply has no answer. They quote nothing, so they may be logged."""


def _remarked(answer: _T, remark: str | None) -> _T:
    if remark is None or not hasattr(answer, "reasoning"):
        return answer
    return msgspec.structs.replace(answer, reasoning=f"{answer.reasoning} [{remark}]")  # type: ignore[type-var]


def _raw_answer(text: str, key: str) -> msgspec.Raw | None:
    reply = _decoded(_reply_in(text), dict[str, dict[str, msgspec.Raw]])
    if reply is None or reply.keys() != {"answer"} or reply["answer"].keys() != {key}:
        return None
    return reply["answer"][key]


def _decoded(text: str | msgspec.Raw, kind: type[_T]) -> _T | None:
    """The value, in which a number may be written as a text (`"1"`), or a whole one with decimals (`1.0`)."""
    try:
        return msgspec.json.decode(text, type=kind, strict=False)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None


def _reply_in(text: str) -> str:
    """The reply without what models write around it if no schema binds them: their thoughts before it, marks, a code block.

    What else stands before or after it makes the reply invalid.
    """
    reply = _without_end_marks(text)
    for _ in range(_MOST_MARKS):
        rest = None if reply.startswith(("{", "```")) else _behind_marks(reply)
        if rest is None:
            break
        reply = _without_end_marks(rest)
    block = _CODE_BLOCK.fullmatch(reply)
    return block[1] if block else reply


def _without_end_marks(text: str) -> str:
    text = text.strip("\ufeff \t\r\n")
    for _ in range(_MOST_MARKS):
        text = _END_MARK.sub("", text).rstrip()
    return text


def _behind_marks(text: str) -> str | None:
    """What follows the thoughts at the beginning, or what stands in the tag around all of it; None if there is neither."""
    opening = _OPENING.match(text)
    if opening is not None:
        before, closing, rest = text.rpartition(opening.expand(_CLOSINGS[opening.lastgroup or ""]))
        if closing:
            return rest if rest.strip() else before[opening.end() :]
    ends = [end.end() for end in _END_OF_THOUGHTS.finditer(text)]
    return text[ends[-1] :] if ends else None


_MOST_MARKS = 4
_OPENING = re.compile(
    r"<(?P<tag>[A-Za-z][\w:.-]{0,40})(?:\s[^<>]{0,200})?>|\[(?P<bracket>[A-Za-z]\w{0,40})\]|◁(?P<triangle>\w{1,40})▷"
)
"""Any tag: `<think>`, `<reasoning>` (Bedrock), `[THINK]` (Mistral), `◁think▷` (Kimi)."""
_CLOSINGS = {"tag": r"</\g<tag>>", "bracket": r"[/\g<bracket>]", "triangle": "◁/\\g<triangle>▷"}
_END_OF_THOUGHTS = re.compile(
    r"</(?:\w{1,20}:)?(?:think|thinking|thought|thoughts|reason|reasoning|reflection|analysis|scratchpad)>"
    r"|\[/(?:THINK|THINKING|REASONING)\]|◁/think(?:ing)?▷"
    r"|<\|[\w/ -]{1,40}\|>(?=\s*(?:\{|```))|<unused\d{1,4}>(?=\s*(?:\{|```))"
    r"|\bassistantfinal(?=\s*\{)|Here is my response:(?=\s*(?:\{|```))",
    re.IGNORECASE,
)
"""Some servers leave the opening mark out, or print the marks of a model's template (gpt-oss: `<|channel|>final<|message|>`)."""
_END_MARK = re.compile(r"(?:<\|[\w/ -]{1,40}\|>|</s>|<eos>|<end_of_turn>)\Z")
_CODE_BLOCK = re.compile(r"```(?:json\b)?(.*)```", re.IGNORECASE | re.DOTALL)


def schema_of(forms: Iterable[Form[Any]]) -> dict[str, Any]:
    """The JSON schema of a reply, which has one of these forms. It has no bounds, which some endpoints do not know; reading checks them."""
    return _object({"answer": {"anyOf": [_branch(form) for form in forms]}})


def _schema_of(kind: Any) -> dict[str, Any]:
    if kind in _JSON_NAMES:
        return {"type": _JSON_NAMES[kind]}
    if get_origin(kind) is Literal:
        return {"type": "string", "enum": list(get_args(kind))}
    if get_origin(kind) is list:
        return {"type": "array", "items": _schema_of(*get_args(kind))}
    return _object({name: _schema_of(field) for name, field in get_type_hints(kind).items()})


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _branch(form: Form[Any]) -> dict[str, Any]:
    return _object({form.key: _schema_of(list[form.kind] if form.is_list else form.kind)})  # type: ignore[name-defined]


_JSON_NAMES = {str: "string", float: "number", int: "integer"}
