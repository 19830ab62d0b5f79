"""Finds the user's own words in what a call was given."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

Asked: TypeAlias = Sequence[tuple[str, str]]
"""Texts that a call was given, by the name of the argument or field; the first names that are empty stand for the
question itself."""

Prompt: TypeAlias = Sequence[tuple[str | None, str]]
"""What a model was given: texts, each with the role of its message; None where it is no message."""

Beside: TypeAlias = Sequence[tuple[int, str | None, Any]]
"""What messages have beside texts: the number of texts before it, the role, and a tool call, several, or the id of one."""

_STRONG = ("user_msg", "question", "query", "user_message", "message", "user_query", "user_question", "query_str")
_WEAK = ("input", "user_input", "prompt", "text", "msg", "request", "topic")
_CONVERSATIONS = ("chat_history", "messages")
_OBSERVATION = "Observation:"  # so a reasoning agent tells its model, as the user, what a tool gave


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
    text = getattr(value, "query_str", None)
    if isinstance(text, str):
        return text
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
