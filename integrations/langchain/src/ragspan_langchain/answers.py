"""Which text of a request was the question, and which the answer, from frozen payloads."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ragspan_langchain.payloads.freezing import DOCUMENTS, OPAQUE, Frozen, FrozenMessage, FrozenObject
from ragspan_langchain.runs import Reply

_QUESTION_KEYS = ("question", "query", "user_question", "user_query", "user_input", "input", "prompt")
_QUESTION_WORDS = ("question", "query", "input", "request", "ask", "message", "text", "topic", "prompt")
_NO_WORDS = {"name", "id", "type", "role", "lang", "language", "locale", "model"}
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


def question_in(inputs: Frozen, queries: Sequence[str] = (), *, named_only: bool = False) -> str | None:
    """The user's own words in what a request was called with.

    Args:
        inputs: a text, messages, or fields of which one holds the question, maybe fields within fields.
        queries: what was searched for; a field that equals one of them is the question where no name tells.
        named_only: take the user's messages and fields that are called a question, no others.
    """
    leaves = list(_leaves(inputs))
    texts = [(key, value) for key, value in leaves if isinstance(value, str) and value.strip()]
    spoken = [value.text for _, value in leaves if isinstance(value, FrozenMessage) and value.text.strip()]
    named = [text for wanted in _QUESTION_KEYS for key, text in texts if key == wanted]
    if named_only:
        return next(iter([*named, *spoken]), None)
    alike = [text for word in _QUESTION_WORDS for key, text in texts if word in key]
    searched = [text for _, text in texts if text in queries]
    rest = sorted((text for key, text in texts if key not in _NO_WORDS), key=lambda text: "?" not in text)
    return next(iter([*named, *spoken, *alike, *searched, *rest]), None)


def _leaves(value: Frozen, key: str = "") -> Iterator[tuple[str, str | FrozenMessage]]:
    """The texts in a payload by the name of their field, those that lie deeper last.

    Of a conversation it is what the user said last.
    """
    deeper: list[tuple[str, Frozen]] = []
    if isinstance(value, dict):
        for name, item in value.items():
            own = name.lower()
            if isinstance(item, str):
                yield own, item
            elif "history" not in own:
                deeper.append((own, item))
    elif isinstance(value, list):
        said = _last_words(value, are_messages=key.endswith("messages"))
        if said is not None:
            yield key, said
        else:
            deeper += [(key, item) for item in reversed(value) if isinstance(item, (dict, list, str))]
    elif isinstance(value, (str, FrozenMessage)):
        yield key, value
    for name, item in deeper:
        yield from _leaves(item, name)


def _last_words(items: Sequence[Frozen], *, are_messages: bool) -> FrozenMessage | None:
    messages = [
        FrozenMessage(role="human", text=item) if isinstance(item, str) else item
        for item in items
        if isinstance(item, FrozenMessage) or (are_messages and isinstance(item, str))
    ]
    own = [message for message in messages if message.role == "human"] or messages
    return own[-1] if own else None


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
    """What the conversation ends with, if it is an answer: the assistant's text, or a tool's that stands for it."""
    last = messages[-1]
    return last.text if last.role in {"ai", "tool"} and last.text.strip() else None


def _response_in_fields(
    fields: Mapping[str, Frozen], inputs: Frozen, replies: Sequence[Reply], preferred: Callable[[str], bool]
) -> str | None:
    own = _without_inputs(fields, inputs)
    said = {" ".join(reply.text.split()) for reply in replies if reply.text.strip()}
    spoken = [text for text in texts_in(own, in_objects=False) if " ".join(text.split()) in said]
    spoken.sort(key=lambda text: not preferred(text))
    if _are_equals(own, [text for text in spoken if preferred(text)]):
        return as_json(own)
    for value in _candidates(own, spoken):
        response = _rendered(value)
        if response is not None:
            return response
    return as_json({key: value for key, value in own.items() if not _holds_messages(value) and _is_data(value)})


def _are_equals(own: Mapping[str, Frozen], grounded: Sequence[str]) -> bool:
    """Whether several fields are answers, and no name tells that one of them is the answer."""
    fields = [key for key, value in own.items() if isinstance(value, str) and value in grounded]
    named = any(word in key.lower() for key in own for word in (*_ANSWER_KEYS, *_ANSWER_WORDS))
    return len(fields) > 1 and not named


def _without_inputs(fields: Mapping[str, Frozen], inputs: Frozen) -> dict[str, Frozen]:
    """What a request added; fields that were passed through are no answer."""
    given = inputs if isinstance(inputs, dict) else {}
    return {
        key: value for key, value in fields.items() if value != inputs and (key not in given or given[key] != value)
    }


def _is_data(value: Frozen) -> bool:
    return value not in (DOCUMENTS, OPAQUE) and not (isinstance(value, list) and not list(filter(_is_data, value)))


def _candidates(own: Mapping[str, Frozen], spoken: Sequence[str]) -> Iterator[Frozen]:
    yield from (own[key] for key in _ANSWER_KEYS if key in own)
    named = [value for word in _ANSWER_WORDS for key, value in own.items() if word in key.lower()]
    yield from (value for value in named if isinstance(value, str) and value in spoken)
    yield from spoken
    yield from named
    yield from (value for value in own.values() if _holds_messages(value))
    yield from (value[key] for value in own.values() if isinstance(value, dict) for key in _ANSWER_KEYS if key in value)
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


def texts_in(value: Frozen, *, in_objects: bool = True) -> Iterator[str]:
    """Every text in a frozen payload; if not `in_objects`, without those inside the program's own objects."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)) and (in_objects or not isinstance(value, FrozenObject)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from texts_in(item, in_objects=in_objects)
