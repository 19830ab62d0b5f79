"""Reads what a model replies, by the parts that it was asked for.

A reply that is not JSON, lacks a field, or has a verdict that is not on the menu is invalid, and never counts as a "no". What
is unambiguous is read all the same: case, blanks and hyphens of a verdict, a comma too many, an object or a code block within
prose, a missing `answer` around it.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Container, Iterable
from functools import lru_cache
from typing import Any, Final

import msgspec

from ragspan.judges.llm.parts import Part

PAGE: Final = "https://github.com/ragspan/ragspan/blob/main/docs/judges.md"
_DO = f"take a larger model, or a server that keeps replies to a JSON schema ({PAGE})"
PROSE = f"the judge's model replied with prose, not with the JSON that it was asked for: {_DO}"
OTHER_JSON = f"the judge's model replied with JSON of another form than it was asked for: {_DO}"
MISCOUNTED = f"the judge's model gave verdicts on numbers that it was not asked about, or several on one number: {_DO}"
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
PROBLEMS = frozenset(
    {PROSE, OTHER_JSON, EMPTY, CUT_OFF, REFUSED, REFUSED_IN_WORDS, TOOL_CALL, BROKEN_OFF, THOUGHTS_ONLY, MISCOUNTED}
)
"""Why a reply has no answer. They quote nothing, so they may be logged."""
_MOST_TRIED = 50
_EXTRA_COMMA = re.compile(r'("(?:[^"\\]|\\.)*")|,(?=\s*[}\]])', re.DOTALL)
_CODE_BLOCK = re.compile(r"```(?:[a-z]+\b)?(.*?)```", re.IGNORECASE | re.DOTALL)
_OPENING = re.compile(r"<[A-Za-z][\w:.-]{0,40}(?:\s[^<>]{0,200})?>|\[[A-Za-z]\w{0,40}\]|◁\w{1,40}▷")
"""Any tag: `<think>`, `<reasoning>` (Bedrock), `[THINK]` (Mistral), `◁think▷` (Kimi)."""
_END_OF_THOUGHTS = re.compile(
    r"</[A-Za-z][\w:.-]{0,40}>|\[/[A-Za-z]\w{0,40}\]|◁/\w{1,40}▷"
    r"|<\|[\w/ -]{1,40}\|>(?=\s*(?:\{|```))|<unused\d{1,4}>(?=\s*(?:\{|```))"
    r"|\bassistantfinal(?=\s*\{)|Here is my response:(?=\s*(?:\{|```))",
    re.IGNORECASE,
)
"""Some servers leave the opening mark out, or print the marks of a model's template (gpt-oss: `<|channel|>final<|message|>`)."""
_END_MARK = re.compile(r"(?:<\|[\w/ -]{1,40}\|>|</s>|<eos>|<end_of_turn>)\s*\Z")
_REFUSAL = re.compile(
    r"(?:\W*\w+,)?\W*(?:sorry|apologi[sz]e|(?:I(?:['\u2019]m| am)|we(?:['\u2019]re| are)) (?:very |so )?(?:sorry|unable|not able|afraid)"
    r"|(?:I|we) (?:can(?:['\u2019]?t|not)|won['\u2019]t|will not|must decline|decline)|as an AI\b)",
    re.IGNORECASE,
)


def read(part: Part, text: str, numbers: Container[int] | None = None) -> tuple[list[Any], str | None]:
    """The valid answers in a reply, or what it is that holds none.

    A reply with another number than those that were asked for, or with one of them more than once, has no answer at all: its model
    counts in another way, so the other verdicts may be about something else as well.
    """
    reply = _object_in(str(text))  # frameworks have texts of their own
    if reply is None:
        return [], REFUSED_IN_WORDS if _REFUSAL.match(text.strip()[:200]) else PROSE
    answer = reply["answer"] if isinstance(reply.get("answer"), dict) else reply
    value = answer.get(part.key)
    items = value if part.is_list and isinstance(value, list) else [] if part.is_list or value is None else [value]
    found = _converted(items, part.kind)
    if numbers is not None:
        known = [one.number for one in _converted(items, _Numbered)]
        if len(set(known)) < len(known) or any(number not in numbers for number in known):
            return [], MISCOUNTED
    return found, None if found else OTHER_JSON


class _Numbered(msgspec.Struct, frozen=True):
    number: int


def _converted(items: Iterable[Any], kind: Any) -> list[Any]:
    """The valid ones, in which a number may be written as a text (`"1"`), or a whole one with decimals (`1.0`)."""
    found = []
    for item in items:
        with contextlib.suppress(msgspec.ValidationError, RecursionError):
            found.append(msgspec.convert(_folded(item), kind, strict=False))
    return found


def _folded(item: Any) -> Any:
    """The item with verdicts as they stand on the menu: "Not grounded." is `not_grounded`."""
    if isinstance(item, list):
        return [_folded(one) for one in item]
    if not isinstance(item, dict):
        return item
    folded = {key: _folded(value) for key, value in item.items()}
    if isinstance(verdict := folded.get("verdict"), str):
        folded["verdict"] = "_".join(re.findall(r"[^\W_]+", verdict.lower()))
    return folded


@lru_cache(maxsize=32)
def _object_in(text: str) -> dict[str, Any] | None:
    """The JSON object of a reply, without thoughts and marks: all of it, or else the only one, in a code block or in prose.

    All parts of a request are read from the same reply; nobody changes what is read.
    """
    reply = _without_thoughts(text)
    blocks = _CODE_BLOCK.findall(reply)
    for candidate in (reply, *(blocks if len(blocks) == 1 else ())):
        for plain in (candidate, _EXTRA_COMMA.sub(r"\1", candidate)):
            with contextlib.suppress(msgspec.DecodeError, UnicodeError, RecursionError):
                found = msgspec.json.decode(plain)
                if isinstance(found, dict):
                    return found
    return None if _OPENING.match(reply) else _only_object_in(_EXTRA_COMMA.sub(r"\1", reply))


def _only_object_in(text: str) -> dict[str, Any] | None:
    """The object that stands in a text, if there is one only, and none that is cut off around it."""
    found: list[dict[str, Any]] = []
    place = 0
    for _ in range(_MOST_TRIED):
        if len(found) > 1 or (start := text.find("{", place)) < 0:
            break
        try:
            value, place = json.JSONDecoder().raw_decode(text, start)
        except (ValueError, RecursionError):
            if start == 0:
                return None  # it is cut off, and what stands within it is a part of an answer
            place = start + 1
        else:
            found += [value] if value else []
    return found[0] if len(found) == 1 else None


def _without_thoughts(text: str) -> str:
    """The reply without what models write around it if no schema binds them: thoughts before it, a tag around it, and marks."""
    reply = ""
    while reply != text:
        reply, text = text, _END_MARK.sub("", text).strip("\ufeff \t\r\n")
    ends = [] if reply.startswith(("{", "```")) else list(_END_OF_THOUGHTS.finditer(reply))
    if not ends:
        return reply  # if it begins with a tag, they have no end, and nothing is read
    if rest := reply[ends[-1].end() :].strip():
        return rest
    opening = _OPENING.match(reply)
    return reply[opening.end() if opening else 0 : ends[-1].start()].strip()
