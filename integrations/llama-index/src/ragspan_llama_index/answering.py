"""Reads the answer out of what a call returned."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ragspan_llama_index.roles import has_base
from ragspan_llama_index.texts import fields_of, text_in

_TELLING = ("response", "answer", "result", "output", "final_answer", "final_response", "text", "message", "content")

STREAMS = ("StreamingResponse", "AsyncStreamingResponse")
CHAT_STREAM = "StreamingAgentChatResponse"
GENERATOR = "generator"
_MAX_PARTS = 100


def answer_in(result: Any) -> Any:
    """The part of a result that is the answer: of a workflow's, what its last event holds, under a telling name."""
    if kind_of(result) is not None or isinstance(result, str):
        return result
    if has_base(type(result), "StopEvent"):
        inner, fields = result.result, fields_of(result)
        if inner is not None and inner is not result:
            return answer_in(inner)
        return _telling_part(fields, result) if fields else None
    if _has_fields(result):
        return _telling_part(_fields(result), result)
    if isinstance(result, list) and result and kind_of(result[-1]) == "ChatMessage":
        return result[-1]  # a conversation: its end is the answer
    return result


def texts_in(part: Any) -> Sequence[str]:
    """The texts in an answer that has several parts."""
    if _has_fields(part) or has_base(type(part), "StopEvent"):
        part = list(_fields(part).values())
    return [text for one in part[:_MAX_PARTS] if (text := text_in(one))] if isinstance(part, (list, tuple)) else ()


def hand_out(result: Any, part: Any, watching: Any) -> bool:
    """Put what watches in the place of the stream that is the answer in a result; False where it has none of its own."""
    if has_base(type(result), "StopEvent"):
        inner = result.result
        if inner is part:
            result._result = watching  # noqa: SLF001  the event is the program's, and has no other way
            return True
        if inner is not None and inner is not result:
            return hand_out(inner, part, watching)
    names = [name for name, value in _fields(result).items() if value is part]
    for name in names:
        if isinstance(result, dict):
            result[name] = watching
        else:
            setattr(result, name, watching)
    return bool(names)


def kind_of(part: Any) -> str | None:
    """The name of the framework's class of responses that this is one of, or `GENERATOR`, else None."""
    kind = type(part)
    try:
        return _kinds[kind]
    except KeyError:
        if len(_kinds) >= _MAX_KINDS:
            _kinds.clear()
        name = _kinds[kind] = _look_up(kind)
        return name


def text_of(part: Any) -> str | None:
    """The text of an answer that is there as a whole, a structured one as JSON; None if there is no text in it."""
    if part is None or isinstance(part, str):
        return part
    name = kind_of(part)
    if name is not None:
        return _READERS[name](part)
    if hasattr(part, "model_dump_json"):
        return _as_json(part)
    if isinstance(part, (int, float)):
        return str(part)
    return _as_plain_json(part) if isinstance(part, (dict, list, tuple)) else None


def text_of_tokens(tokens: Sequence[Any]) -> str | None:
    """What a stream's tokens amount to. A structured answer is streamed as objects, each more complete than the last."""
    if not tokens:
        return None
    texts = [token for token in tokens if isinstance(token, str)]
    return "".join(texts) if texts else text_of(tokens[-1])


def _look_up(kind: type) -> str | None:
    # The class is asked, not the object: some of the framework's responses claim to have every attribute.
    if hasattr(kind, "__next__") or hasattr(kind, "__anext__"):
        return GENERATOR
    return next((name for name in _READERS if has_base(kind, name)), None)


def _has_fields(result: Any) -> bool:
    own_class = dataclasses.is_dataclass(result) and not type(result).__module__.startswith("llama_index.")
    return isinstance(result, dict) or own_class


def _fields(result: Any) -> Mapping[str, Any]:
    if isinstance(result, dict):
        return result
    return fields_of(result) if has_base(type(result), "StopEvent") else getattr(result, "__dict__", {})


def _telling_part(fields: Mapping[str, Any], whole: Any) -> Any:
    for name in _TELLING:
        if name in fields and fields[name] is not None:
            return fields[name]
    values = [value for value in fields.values() if not _is_found(value)]
    answers = [value for value in values if kind_of(value) is not None]
    texts = [value for value in values if isinstance(value, str)]
    if len(answers) == 1:
        return answers[0]
    if len(texts) == 1 and len(fields) > 1:
        return texts[0]
    return whole if values else None


def _is_found(value: Any) -> bool:
    """Whether a part of a result is what a search or a tool brought, and so no answer."""
    return are_nodes(value) or kind_of(value) == "ToolOutput"


def are_nodes(items: Any) -> bool:
    """Whether this is a list of nodes, with or without scores."""
    if not isinstance(items, (list, tuple)) or not items:
        return False
    return all(has_base(type(item), "NodeWithScore") or has_base(type(item), "BaseNode") for item in items)


def _text_attribute(part: Any) -> str | None:
    text = part.response
    return text if isinstance(text, str) else None


def _structured(part: Any) -> str | None:
    return None if part.response is None else _as_json(part.response)


def _agent_text(part: Any) -> str | None:
    text = text_in(part.response)
    if text:
        return text
    return text if part.structured_response is None else _as_plain_json(part.structured_response)


def _no_text(_: Any) -> str | None:
    return None


_READERS: Mapping[str, Callable[[Any], str | None]] = {
    "Response": _text_attribute,
    "PydanticResponse": _structured,
    "StreamingResponse": _no_text,
    "AsyncStreamingResponse": _no_text,
    "AgentChatResponse": _text_attribute,
    "StreamingAgentChatResponse": _no_text,
    "AgentOutput": _agent_text,
    "ChatMessage": text_in,
    "ChatResponse": lambda part: text_in(part.message),
    "CompletionResponse": lambda part: part.text if isinstance(part.text, str) else None,
    "ToolOutput": text_in,
    GENERATOR: _no_text,
}
_MAX_KINDS = 1_000  # classes made at run time must not be kept for ever
_kinds: dict[type, str | None] = {}


def _as_json(model: Any) -> str | None:
    try:
        return str(model.model_dump_json())
    except Exception:  # noqa: BLE001  a program's own class
        return str(model)


def _as_plain_json(value: Any) -> str | None:
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        return None
