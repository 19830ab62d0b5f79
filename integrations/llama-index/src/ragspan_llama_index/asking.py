"""Finds the user's own words in what a call was given."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Asked = Sequence[tuple[str, str]]
"""Texts that a call was given, by the name of the argument or field; the first names that are empty stand for the
question itself."""

Prompt = Sequence[tuple[str | None, str]]
"""What a model was given: texts, each with the role of its message; None where it is no message."""

Beside = Sequence[tuple[int, str | None, Any]]
"""What messages have beside texts: the number of texts before it, the role, and a tool call, several, or the id of one."""

_STRONG = ("user_msg", "question", "query", "user_message", "message", "user_query", "user_question", "query_str")
_WEAK = ("input", "user_input", "prompt", "text", "msg", "request", "topic")
_CONVERSATIONS = ("chat_history", "messages")
_OBSERVATION = "Observation:"  # so a reasoning agent tells its model, as the user, what a tool gave


def asked_with(argument: Any) -> Asked:
    """What a query, a chat turn or a search was given: a text, a `QueryBundle` or a `ChatMessage`."""
    text = text_in(argument)
    return () if text is None else (("", text),)


def asked_by_event(event: Any) -> Asked:
    """What a workflow was started with: the texts among its start event's fields."""
    fields = fields_of(event)
    asked = [(name, text_in(value)) for name, value in fields.items() if name not in _CONVERSATIONS]
    asked += [(name, _last_of_user(fields[name])) for name in _CONVERSATIONS if name in fields]
    return tuple((name, text) for name, text in asked if text is not None)


def question_in(asked: Asked, searched: Iterable[str]) -> str | None:
    """The user's words: what goes by a telling name, else what was searched with inside, else the first text."""
    texts = dict(reversed(asked))
    queries = set(searched)
    candidates = [texts.get(name) for name in ("", *_STRONG)]
    candidates += [text for _, text in asked if text in queries]
    candidates += [texts.get(name) for name in (*_WEAK, *_CONVERSATIONS)]
    candidates += [text for _, text in asked]
    return next((text for text in candidates if text is not None and text.strip()), asked[0][1] if asked else None)


def prompt_in(given: Any) -> tuple[Prompt, Beside]:
    """What a model was given: a text, or messages."""
    if isinstance(given, str):
        return ((None, given),), ()
    parts: list[tuple[str | None, str]] = []
    beside: list[tuple[int, str | None, Any]] = []
    for message in given if isinstance(given, (list, tuple)) else ():
        role = getattr(message, "role", None)
        role = getattr(role, "value", role)
        _add_texts(getattr(message, "blocks", ()), role, parts, beside)
        more = getattr(message, "additional_kwargs", None)
        if more:
            calls = more.get("tool_calls") or more.get("tool_call_id")
            if calls:
                beside.append((len(parts), role, calls))
    return parts, beside


def calls_in(message: Any) -> Sequence[Any]:
    """The tool calls in a model's message, as the framework has them or as the provider has."""
    if message is None:
        return ()
    blocks = [block for block in getattr(message, "blocks", ()) if getattr(block, "block_type", None) == "tool_call"]
    more = getattr(message, "additional_kwargs", None)
    calls = more.get("tool_calls") if more and not blocks else None
    return calls if isinstance(calls, list) else blocks


def _add_texts(
    blocks: Any,
    role: str | None,
    parts: list[tuple[str | None, str]],
    beside: list[tuple[int, str | None, Any]],
) -> None:
    for block in blocks:
        text = getattr(block, "text", None)
        if isinstance(text, str):
            if text:
                parts.append((role, text))
        elif isinstance(inner := getattr(block, "content", None), list):  # a block that may be cited
            _add_texts(inner, role, parts, beside)
        elif getattr(block, "block_type", None) == "tool_call":
            beside.append((len(parts), role, [block]))


def asked_in(prompt: Prompt) -> str | None:
    """What the user said last in a conversation that went on: a resumed agent is not told again."""
    spoke = [place for place, (role, _) in enumerate(prompt) if role == "assistant"]
    before = prompt[: spoke[-1]] if spoke else ()
    told = [text for role, text in before if role == "user" and not text.startswith(_OBSERVATION)]
    return told[-1] if told else None


def text_in(value: Any) -> str | None:
    """The text of a string, a `QueryBundle` or a `ChatMessage`."""
    if isinstance(value, str):
        return value
    for name in ("query_str", "content"):
        text = getattr(value, name, None) if not isinstance(value, dict) else value.get(name)
        if isinstance(text, str):
            return text
    return None


def fields_of(event: Any) -> Mapping[str, Any]:
    """The fields of a workflow's event: those that its class declares, and those that were just given."""
    declared = getattr(event, "__dict__", None) or {}
    private = getattr(event, "__pydantic_private__", None) or {}
    given = private.get("_data")
    return {**declared, **given} if isinstance(given, dict) else dict(declared)


def _last_of_user(messages: Any) -> str | None:
    if not isinstance(messages, (list, tuple)):
        return None
    for message in reversed(messages):
        role = message.get("role") if isinstance(message, dict) else getattr(message, "role", None)
        if getattr(role, "value", role) == "user":
            return text_in(message)
    return None
