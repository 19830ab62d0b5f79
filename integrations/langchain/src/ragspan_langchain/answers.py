"""Which text of a request was the question, and which the answer, from frozen payloads."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ragspan_langchain.payloads import DOCUMENTS, OPAQUE, Frozen, FrozenMessage, FrozenObject
from ragspan_langchain.runs import Reply

_QUESTION_KEYS = ("question", "query", "user_question", "user_query", "user_input", "input", "prompt")
_QUESTION_WORDS = ("question", "query", "input", "request", "ask", "message", "text", "topic", "prompt")
_ANSWER_KEYS = ("structured_response", "answer", "final_answer")
_ANSWER_WORDS = (
    "answer",
    "response",
    "reply",
    "result",
    "output",
    "generat",
    "completion",
    "summary",
    "report",
    "text",
)


def question_in(inputs: Frozen, queries: Sequence[str] = ()) -> str | None:
    """The user's own words in what a request was called with.

    Args:
        inputs: a text, messages, or fields of which one holds the question.
        queries: what was searched for; a field that equals one of them is the question where no name tells.
    """
    if isinstance(inputs, str):
        return inputs if inputs.strip() else None
    if isinstance(inputs, FrozenMessage):
        return question_in(inputs.text)
    if isinstance(inputs, list):
        return _question_in_list(inputs, queries)
    return _question_in_fields(inputs, queries) if isinstance(inputs, dict) else None


def _question_in_list(items: list[Frozen], queries: Sequence[str]) -> str | None:
    messages = [item for item in items if isinstance(item, FrozenMessage)]
    own = [message for message in messages if message.role == "human"] or messages
    if own:
        return question_in(own[-1].text)
    found = (question_in(item, queries) for item in reversed(items))
    return next((question for question in found if question is not None), None)


def _question_in_fields(fields: Mapping[str, Frozen], queries: Sequence[str]) -> str | None:
    usable = {key: value for key, value in fields.items() if "history" not in key.lower()}
    named = [usable[key] for key in _QUESTION_KEYS if key in usable]
    conversations = [value for value in usable.values() if _holds_messages(value)]
    alike = [
        value
        for word in _QUESTION_WORDS
        for key, value in usable.items()
        if word in key.lower() and not isinstance(value, list)
    ]
    searched = [value for value in usable.values() if isinstance(value, str) and value in queries]
    rest = sorted((value for value in usable.values() if isinstance(value, str)), key=lambda text: "?" not in text)
    nested = [value for value in usable.values() if isinstance(value, dict)]
    found = (question_in(value, queries) for value in [*named, *conversations, *alike, *searched, *rest, *nested])
    return next((question for question in found if question is not None), None)


def _holds_messages(value: Frozen) -> bool:
    return isinstance(value, FrozenMessage) or (
        isinstance(value, list) and any(isinstance(item, FrozenMessage) for item in value)
    )


def response_in(
    output: Frozen, *, inputs: Frozen, replies: Sequence[Reply], preferred: Callable[[str], bool] = lambda _: False
) -> str | None:
    """What the caller got as the answer; an object as JSON.

    Args:
        output: what the request returned.
        inputs: what it was called with: fields that were passed through are no answer.
        replies: what the models of the request said: a field that holds a reply is the answer where no name tells.
        preferred: tells which of several such replies to take.
    """
    if isinstance(output, str):
        return output
    if isinstance(output, FrozenMessage):
        return output.text or None
    if isinstance(output, FrozenObject) or _was_spoken(output, replies):
        return as_json(output)
    if isinstance(output, list):
        return _response_in_list(output)
    if isinstance(output, dict):
        return _response_in_fields(output, inputs, replies, preferred)
    return json.dumps(output) if isinstance(output, (bool, int, float)) else None


def _response_in_list(items: list[Frozen]) -> str | None:
    messages = [item for item in items if isinstance(item, FrozenMessage)]
    if messages:
        return _last_answer(messages)
    if items and all(isinstance(item, str) for item in items):
        return "\n".join(items)
    return as_json(items)


def _last_answer(messages: Sequence[FrozenMessage]) -> str | None:
    """The text of the last message if the assistant wrote it; else the conversation has no answer yet."""
    last = messages[-1]
    if last.role == "human":
        return None
    own = [message.text for message in messages if message.role == "ai" and message.text.strip()]
    return own[-1] if own and not (last.role == "ai" and not last.text.strip()) else None


def _response_in_fields(
    fields: Mapping[str, Frozen], inputs: Frozen, replies: Sequence[Reply], preferred: Callable[[str], bool]
) -> str | None:
    given = inputs if isinstance(inputs, dict) else {}
    own = {key: value for key, value in fields.items() if key not in given or given[key] != value}
    said = {" ".join(reply.text.split()) for reply in replies if reply.text.strip()}
    spoken = [value for value in own.values() if isinstance(value, str) and " ".join(value.split()) in said]
    spoken.sort(key=lambda text: not preferred(text))
    for value in _candidates(own, spoken):
        response = _rendered(value)
        if response is not None:
            return response
    return as_json({key: value for key, value in own.items() if not _holds_messages(value)})


def _candidates(own: Mapping[str, Frozen], spoken: Sequence[str]) -> Iterator[Frozen]:
    yield from (own[key] for key in _ANSWER_KEYS if key in own)
    named = [value for word in _ANSWER_WORDS for key, value in own.items() if word in key.lower()]
    yield from (value for value in named if value in spoken)
    yield from spoken
    yield from named
    yield from (value for value in own.values() if _holds_messages(value))
    texts = [value for value in own.values() if isinstance(value, str)]
    if len(texts) == 1:
        yield texts[0]


def _rendered(value: Frozen) -> str | None:
    if isinstance(value, str):
        return value if value.strip() else None
    if isinstance(value, FrozenMessage):
        return value.text or None
    if isinstance(value, list) and _holds_messages(value):
        return _last_answer([item for item in value if isinstance(item, FrozenMessage)])
    return as_json(value) if isinstance(value, (dict, list)) else None


def _was_spoken(output: Frozen, replies: Iterable[Reply]) -> bool:
    """Whether a model said just this object, as JSON or as the arguments of a tool call."""
    if not isinstance(output, (dict, list)) or not output:
        return False
    return any(output in (reply.calls or ()) or output == json_in(reply.text) for reply in replies)


def json_in(text: str) -> Any:
    """The object in a text that is JSON, fenced or not; None in any other text."""
    body = text.strip().removeprefix("```json").removeprefix("```").removesuffix("```").strip()
    if not body.startswith(("{", "[")):
        return None
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def as_json(value: Frozen) -> str | None:
    """A frozen object as JSON text, without what is no data; None when nothing is left."""
    plain = _plain(value)
    return None if plain in (_NOTHING, {}, []) else json.dumps(plain, ensure_ascii=False)


_NOTHING = object()


def _plain(value: Frozen) -> Any:
    if value is OPAQUE or value is DOCUMENTS:
        return _NOTHING
    if isinstance(value, FrozenMessage):
        return value.text
    if isinstance(value, dict):
        items = {key: _plain(item) for key, item in value.items()}
        return {key: item for key, item in items.items() if item is not _NOTHING}
    if isinstance(value, list):
        return [item for item in map(_plain, value) if item is not _NOTHING]
    return value


def texts_in(value: Frozen) -> Iterator[str]:
    """Every text in a frozen payload."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from texts_in(item)
    elif isinstance(value, list):
        for item in value:
            yield from texts_in(item)
