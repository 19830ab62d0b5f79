"""Reads what a model replies, in the forms that `tasks` lists.

A reply that is not JSON, lacks a field, or has a verdict that is not on the menu is invalid, and never counts as a "no". What
is unambiguous is read all the same: case, blanks and hyphens of a verdict, a comma too many, an object or a code block within
prose, a missing `answer` around it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Generic, Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec

_T = TypeVar("_T")
PAGE: Final = "https://github.com/ragspan/ragspan/blob/main/docs/judges.md"


class Reply(msgspec.Struct, frozen=True):
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
    """One part of a reply."""

    key: str
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
        items = self._items(text)
        if numbers is not None and _miscounts(items, numbers):
            return []
        answers = (_converted(item, self.kind) for item in items)
        return [_remarked(answer, remark) for answer in answers if answer is not None]

    def problem_of(self, text: str, numbers: Container[int] | None = None) -> str:
        """What a reply is that holds no answer."""
        if _object_in(text) is None:
            return REFUSED_IN_WORDS if _REFUSAL.match(text.strip()[:_OPENING_WORDS]) else PROSE
        items = self._items(text) if self.is_list and numbers is not None else []
        return MISCOUNTED if numbers is not None and _miscounts(items, numbers) else OTHER_JSON

    def _items(self, text: str) -> list[Any]:
        reply = _object_in(text) or {}
        answer = reply["answer"] if isinstance(reply.get("answer"), dict) else reply
        if self.key not in answer:
            return []
        value = answer[self.key]
        return (value if isinstance(value, list) else []) if self.is_list else [value]


def _miscounts(items: Iterable[Any], numbers: Container[int]) -> bool:
    found = [one.number for item in items if (one := _converted(item, _Numbered)) is not None]
    return len(set(found)) < len(found) or any(number not in numbers for number in found)


class _Numbered(msgspec.Struct, frozen=True):
    number: int


_DO = f"take a larger model, or a server that keeps replies to a JSON schema ({PAGE})"
PROSE = f"the judge's model replied with prose, not with the JSON that it was asked for: {_DO}"
OTHER_JSON = f"the judge's model replied with JSON of another form than it was asked for: {_DO}"
EMPTY = "the judge's model replied with nothing"
CUT_OFF = (
    "the reply was cut off at the model's length limit: allow longer replies (max_tokens or max_completion_tokens in "
    "extra_body=), give the server a larger context window (Ollama: OLLAMA_CONTEXT_LENGTH), or let the model reason less"
)
REFUSED = "the judge's model refused, or a filter of its provider took the reply away"
REFUSED_IN_WORDS = (
    "the judge's model refused in words (as in: I cannot help with that): take a model that judges such texts"
)
TOOL_CALL = (
    "the judge's model called a tool, though it was given none: take another model, or switch the server's tools off "
    "(vLLM: no --enable-auto-tool-choice)"
)
BROKEN_OFF = "the model's provider broke the reply off with an error"
THOUGHTS_ONLY = (
    "the judge's model replied with thoughts only (reasoning_content): give the server another parser of reasoning (vLLM and "
    "SGLang: --reasoning-parser), switch thinking off, or allow longer replies"
)
MISCOUNTED = f"the judge's model gave verdicts on numbers that it was not asked about, or several on one number: {_DO}"
PROBLEMS = frozenset(
    {PROSE, OTHER_JSON, EMPTY, CUT_OFF, REFUSED, REFUSED_IN_WORDS, TOOL_CALL, BROKEN_OFF, THOUGHTS_ONLY, MISCOUNTED}
)
"""Why a reply has no answer. They quote nothing, so they may be logged."""
_REFUSAL = re.compile(
    r"(?:\W*\w+,)?\W*(?:sorry|apologi[sz]e|(?:I(?:['\u2019]m| am)|we(?:['\u2019]re| are)) (?:very |so )?(?:sorry|unable|not able|afraid)"
    r"|(?:I|we) (?:can(?:['\u2019]?t|not)|won['\u2019]t|will not|must decline|decline)|as an AI\b)",
    re.IGNORECASE,
)
_OPENING_WORDS = 200


def _remarked(answer: _T, remark: str | None) -> _T:
    if remark is None or not hasattr(answer, "reasoning"):
        return answer
    return msgspec.structs.replace(answer, reasoning=f"{answer.reasoning} [{remark}]")  # type: ignore[type-var]


def _converted(item: Any, kind: type[_T]) -> _T | None:
    """The value, in which a number may be written as a text (`"1"`), or a whole one with decimals (`1.0`)."""
    try:
        return msgspec.convert(_folded(item), kind, strict=False)
    except (msgspec.ValidationError, RecursionError):
        return None


def _folded(item: Any) -> Any:
    """The item with verdicts as they stand on the menu: "Not grounded." is `not_grounded`."""
    if isinstance(item, list):
        return [_folded(one) for one in item]
    if not isinstance(item, dict):
        return item
    return {
        key: "_".join(re.findall(r"[^\W_]+", value.lower()))
        if key == "verdict" and isinstance(value, str)
        else _folded(value)
        if isinstance(value, (list, dict))
        else value
        for key, value in item.items()
    }


@lru_cache(maxsize=32)
def _object_in(text: str) -> dict[str, Any] | None:
    """The JSON object of a reply: all of it, without thoughts and marks; else the only one, in a code block or in prose.

    All questions that a request asks read the same reply; nobody changes what is read.
    """
    reply = _without_marks(text)
    blocks = _CODE_BLOCK.findall(reply)
    for found in ([reply], blocks if len(blocks) == 1 else []):
        decoded = _decoded(found[0]) if found else None
        if decoded is not None:
            return decoded
    if _OPENING.match(reply):  # thoughts without an end
        return None
    objects = list(_objects_in(reply))
    return objects[0] if len(objects) == 1 else None


def _decoded(text: str) -> dict[str, Any] | None:
    for repair in (str, _without_extra_commas):
        try:
            found = msgspec.json.decode(repair(text))
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            continue
        return found if isinstance(found, dict) else None
    return None


def _without_extra_commas(text: str) -> str:
    return _EXTRA_COMMA.sub(r"\1", text)


def _objects_in(text: str) -> Iterator[dict[str, Any]]:
    """Up to two objects that stand in a text, none within another."""
    text = _without_extra_commas(text)
    decoder, place, found, tried = json.JSONDecoder(), 0, 0, 0
    while found < 2 and tried < _MOST_TRIED and (start := text.find("{", place)) >= 0:  # noqa: PLR2004 - two are ambiguous
        tried += 1
        try:
            _, place = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            if start == 0:
                return  # it is cut off, and what stands within it is a part of an answer
            place = start + 1
            continue
        if value := _decoded(text[start:place]):
            found += 1
            yield value


_MOST_TRIED = 50
_EXTRA_COMMA = re.compile(r'("(?:[^"\\]|\\.)*")|,(?=\s*[}\]])', re.DOTALL)
_CODE_BLOCK = re.compile(r"```(?:[a-z]+\b)?(.*?)```", re.IGNORECASE | re.DOTALL)


def _without_marks(text: str) -> str:
    """The reply without what models write around it if no schema binds them: their thoughts before it, and marks."""
    reply = _without_end_marks(text)
    for _ in range(_MOST_MARKS):
        rest = None if reply.startswith(("{", "```")) else _behind_marks(reply)
        if rest is None:
            break
        reply = _without_end_marks(rest)
    return reply


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


@lru_cache(maxsize=32)
def schema_of(forms: tuple[Form[Any], ...], *, together: bool = False) -> dict[str, Any]:
    """The JSON schema of a reply that has one of these forms, or all of them.

    It has no bounds, which some endpoints do not know; reading checks them.
    """
    if together:
        return _object({"answer": _object({form.key: _schema_of_form(form) for form in forms})})
    return _object({"answer": {"anyOf": [_object({form.key: _schema_of_form(form)}) for form in forms]}})


def _schema_of_form(form: Form[Any]) -> dict[str, Any]:
    return _schema_of(list[form.kind] if form.is_list else form.kind)  # type: ignore[name-defined]


def _schema_of(kind: Any) -> dict[str, Any]:
    if kind in _JSON_NAMES:
        return {"type": _JSON_NAMES[kind]}
    if get_origin(kind) is Literal:
        return {"type": "string", "enum": list(get_args(kind))}
    if get_origin(kind) is list:
        return {"type": "array", "items": _schema_of(*get_args(kind))}
    return _object({name: _schema_of(field) for name, field in get_type_hints(kind).items()})


def _object(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


_JSON_NAMES = {str: "string", float: "number", int: "integer", bool: "boolean"}
