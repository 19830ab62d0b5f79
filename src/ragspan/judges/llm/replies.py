"""Reads what an endpoint answers and what its model replies, by the parts that it was asked for.

A reply that is not JSON, lacks a field, or has a verdict that is not on the menu is invalid, and never counts as a "no". What
is unambiguous is read all the same: case, blanks and hyphens of a verdict, a comma too many, an object or a code block within
prose, a missing `answer` around it. A choice that cannot hold a verdict is kept with an empty text and the reason, because its cost counts.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import msgspec

from ragspan.exceptions import JudgeError
from ragspan.judges.judge_protocols import Completion
from ragspan.judges.llm.parts import Part
from ragspan.provider_replies import cost_of, facts_of, total_tokens_of
from ragspan.usage import Usage

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
_NO_COMPLETION = (
    "the endpoint's answer is not a chat completion, because it has no choices: check base_url, which has to be that of "
    "an OpenAI-compatible API and usually ends in /v1, and that it does not stream"
)
_THOUGHTS: Final = ("reasoning_content", "reasoning", "thinking")
_ENDS: Final = {
    r"^(?:length|max_?tokens|max_output_tokens|model_length|max_length|model_context_window_exceeded)$": CUT_OFF,
    r"filter|safety|refusal|guardrail|recitation|blocklist|prohibited|spii|sensitive|blocked": REFUSED,
    r"^(?:error|network_error|insufficient_system_resource|abort)$": BROKEN_OFF,
}
"""Of a reply that ended for this reason, by a pattern for the reasons of all providers."""
_EXTRA_COMMA = re.compile(r'("(?:[^"\\]|\\.)*")|,(?=\s*[}\]])', re.DOTALL)
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


# An endpoint's answer


def read_completions(reply: object) -> list[Completion]:
    """The choices of a chat completion; the first one has all of the usage.

    Raises:
        JudgeError: there is no choice at all.
    """
    fields = reply if isinstance(reply, Mapping) else {}
    choices, usage = fields.get("choices"), _usage_of([reply])
    if not isinstance(choices, list) or not choices:
        # Google leaves the choices out where its filter takes the prompt.
        words = REFUSED if "promptFeedback" in fields or "prompt_feedback" in fields else _NO_COMPLETION
        used = usage if fields.get("usage") else None
        raise JudgeError("InvalidResponse", words, outage=words == _NO_COMPLETION, usage=used)
    completions = []
    for place, choice in enumerate(choices):
        own: Mapping[str, Any] = choice if isinstance(choice, Mapping) else {}
        message: Mapping[str, Any] = found if isinstance(found := own.get("message"), Mapping) else {}
        text = _text_in(message.get("content"))
        ends = own.get("finish_reason") or ("error" if own.get("error") else "")
        completions.append(_completion(text, Usage() if place else usage, str(ends), [message]))
    return completions


def _text_in(content: object) -> str:
    """The reply in a message's content: a text, or parts in a list (Mistral's reasoning models)."""
    if isinstance(content, str):
        return content
    texts = []
    for part in content if isinstance(content, list) else ():
        is_text = isinstance(part, Mapping) and part.get("type", "text") in {"text", "output_text"}
        texts.append(part if isinstance(part, str) else _text_in(part.get("text")) if is_text else "")
    return "".join(texts)


def completion_of(metadata: Iterable[Any], text: str) -> Completion:
    """A completion of what a framework keeps of a reply: its text, which is left out if it was cut off or refused, and its metadata."""
    parts = [part for part in metadata if part is not None]
    return _completion(text, _usage_of(parts), facts_of(parts).finish_reason or "", parts)


def _completion(text: str, usage: Usage, finish_reason: str, told: Iterable[Any]) -> Completion:
    kept = [part for part in told if isinstance(part, Mapping)]
    reason = "refusal" if any(part.get("refusal") for part in kept) else finish_reason
    problem = next((words for pattern, words in _ENDS.items() if re.search(pattern, reason, re.IGNORECASE)), None)
    if problem is None and not text.strip():
        told_by = {"tool_calls": TOOL_CALL, **dict.fromkeys(_THOUGHTS, THOUGHTS_ONLY)}
        problem = next((words for name, words in told_by.items() if any(part.get(name) for part in kept)), EMPTY)
    return Completion(text="" if problem else text, usage=usage, problem=problem)


def _usage_of(metadata: Sequence[Any]) -> Usage:
    """The usage of one request, by what the provider reports; many compatible servers report no tokens, few the cost."""
    facts = facts_of(metadata)
    input_tokens, output_tokens = facts.input_tokens or 0, facts.output_tokens or 0
    return Usage(
        requests=1,
        input_tokens=input_tokens,
        cached_tokens=facts.cached_tokens or 0,
        # Google and xAI leave the thoughts, which are paid as well, out of the output.
        output_tokens=max(output_tokens, (total_tokens_of(metadata) or 0) - input_tokens) if output_tokens else 0,
        usd=cost_of(metadata),
    )


# A model's reply


def read(part: Part, text: str, numbers: Container[int] | None = None) -> tuple[list[Any], str | None]:
    """The valid answers in a reply, or what it is that holds none.

    A reply with another number than those that were asked for, or with one of them more than once, has no answer at all: its model
    counts in another way, so the other verdicts may be about something else as well.
    """
    reply = _object_in(str(text))  # frameworks have texts of their own
    if reply is None:
        return [], REFUSED_IN_WORDS if _REFUSAL.match(text.strip()) else PROSE
    answer = reply["answer"] if isinstance(reply.get("answer"), dict) else reply
    value = answer.get(part.key)
    items = value if part.is_list and isinstance(value, list) else [] if part.is_list or value is None else [value]
    found = []
    for item in items:
        # A number may be written as a text (`"1"`), or a whole one with decimals (`1.0`).
        with contextlib.suppress(msgspec.ValidationError, RecursionError):
            found.append(msgspec.convert(item, part.kind, strict=False))
    if numbers is not None:
        known = [one.number for one in found]
        if len(set(known)) < len(known) or any(number not in numbers for number in known):
            return [], MISCOUNTED
    return found, None if found else OTHER_JSON


def _folded(found: dict[str, Any]) -> dict[str, Any]:
    """The object with a verdict as it stands on the menu: "Not grounded." is `not_grounded`."""
    if isinstance(verdict := found.get("verdict"), str):
        found["verdict"] = "_".join(re.findall(r"[^\W_]+", verdict.lower()))
    return found


_DECODER = json.JSONDecoder(object_hook=_folded, parse_constant=lambda _: None)


@lru_cache(maxsize=32)  # a reply quotes texts of users, which are not kept for long
def _object_in(text: str) -> dict[str, Any] | None:
    """The JSON object of a reply, without thoughts and marks: the only one, also in a code block or in prose.

    All parts of a request are read from the same reply; nobody changes what is read.
    """
    reply = ""
    while reply != text:
        reply, text = text, _END_MARK.sub("", text).strip("\ufeff \t\r\n")
    ends = [] if reply.startswith(("{", "```")) else list(_END_OF_THOUGHTS.finditer(reply))
    if ends:  # of thoughts, or of a tag around the reply; if it begins with a tag that has no end, nothing is read
        opening = _OPENING.match(reply)
        around = reply[opening.end() if opening else 0 : ends[-1].start()]
        reply = reply[ends[-1].end() :].strip() or around.strip()
    objects = [] if _OPENING.match(reply) else list(_objects_in(_EXTRA_COMMA.sub(r"\1", reply)))
    return objects[0] if len(objects) == 1 else None


def _objects_in(text: str) -> Iterator[dict[str, Any]]:
    """The first objects that stand in a text; none if it begins with one that is cut off, as its parts do not answer anything."""
    place = text.find("{")
    for _ in range(50):
        if place < 0:
            return
        try:
            value, end = _DECODER.raw_decode(text, place)
        except (ValueError, RecursionError):
            if place == 0:
                return
            end = place + 1
        else:
            yield from [value] if value else []
        place = text.find("{", end)
