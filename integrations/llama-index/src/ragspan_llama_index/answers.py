"""The texts and answers in the framework's objects and the program's, and the output of a call; on the request path."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from pydantic import BaseModel

from ragspan.capturing import RequestLog
from ragspan.request import ROLES, PayloadMessage
from ragspan.safe_copy import (
    OPAQUE,
    Copying,
    Opaque,
    Snapshot,
    Snapshots,
    dataclass_fields,
    fields_of,
    in_class,
    in_slot,
    is_dict,
    is_list,
    items_of,
    number_of,
    plain_scalar,
    text_keyed,
)
from ragspan.safe_copy import text_of as plain_text
from ragspan_llama_index.classes import GENERATOR, STREAMS, facts_about, has_base
from ragspan_llama_index.nodes import are_nodes

_STREAMING = frozenset({*STREAMS, GENERATOR})
_PARTS = frozenset({"ChatMessage", "ToolOutput"})
"""What may be inside a response, and has its text in blocks."""


def kind_of(part: Any) -> str | None:
    """The name of the framework's class of responses that this is one of, or `GENERATOR`, else None."""
    return facts_about(type(part)).response


# Texts


def text_in(value: Any) -> str | None:
    """The text of a string, a `QueryBundle` or a `ChatMessage`."""
    kind = type(value)
    if value is None or kind is str:
        return value  # type: ignore[no-any-return]  # mypy knows no exact types
    if issubclass(kind, str):
        return plain_text(value)
    own = text_keyed(value) if issubclass(kind, dict) else fields_of(value)
    if "blocks" in own and kind_of(value) in _PARTS:
        return _text_in_blocks(own)
    text = plain_text(own.get("query_str"))
    return plain_text(own.get("content")) if text is None else text


def word_of(value: Any) -> str | None:
    """A text, or the one that an enumeration's member stands for."""
    found = plain_scalar(value)
    return found if type(found) is str else None


def text_of(part: Any) -> str | None:
    """The text of an answer in one piece, a structured one as JSON; None if there is no text in it."""
    kind = type(part)
    if part is None or kind is str:
        return part  # type: ignore[no-any-return]  # mypy knows no exact types
    name = facts_about(kind).response
    if name is not None:
        return READERS[name](fields_of(part)) if name in READERS else None  # a stream has no text yet
    text = plain_text(part)
    if text is not None:
        return text
    if in_class(kind, "model_dump_json") is not None:
        return _as_json(part)
    number = part if kind is bool else number_of(part)
    return None if number is None else str(number)


def text_of_tokens(tokens: Sequence[Any]) -> str | None:
    """The text of a stream's tokens. A structured answer is streamed as objects, each more complete than the last."""
    if not tokens:
        return None
    texts = [text for token in tokens if (text := plain_text(token)) is not None]
    return "".join(texts) if texts else text_of(tokens[-1])


def _text_in_blocks(own: Mapping[str, Any]) -> str | None:
    blocks = [fields_of(block) for block in items_of(own.get("blocks")) or ()]
    texts = [plain_text(each.get("text")) for each in blocks if plain_text(each.get("block_type")) == "text"]
    return "\n".join(text for text in texts if text is not None) if texts else None


READERS: Final[Mapping[str | None, Callable[[Mapping[str, Any]], str | None]]] = {
    "Response": lambda own: plain_text(own.get("response")),
    "PydanticResponse": lambda own: _as_json(own.get("response")),
    "AgentChatResponse": lambda own: plain_text(own.get("response")),
    "AgentOutput": lambda own: text_in(own.get("response")) or _as_json(own.get("structured_response")),
    "ChatMessage": _text_in_blocks,
    "ChatResponse": lambda own: text_in(own.get("message")),
    "CompletionResponse": lambda own: plain_text(own.get("text")),
    "ToolOutput": _text_in_blocks,
}
"""The text of a response, by its fields."""


# Structures


def _read_model(copying: Copying, value: Any, depth: int) -> Snapshot:
    """A model of pydantic by its fields; the framework's own by their texts, but for what a search or a tool brought."""
    facts = facts_about(type(value))
    if facts.response == "ToolOutput" or not facts.bases.isdisjoint({"NodeWithScore", "BaseNode"}):
        own = fields_of(value)
        known = copying.kept.get(id(own.get("node")))
        return OPAQUE if known is None else [known[1], number_of(own.get("score"))]
    if facts.response is None:
        return copying.state(fields_of(value), depth)
    text = copying.copy(text_of(value), depth)
    role = word_of(fields_of(value).get("role"))
    return text if role is None else PayloadMessage(ROLES.get(role, role), text or "")


DATA: Final = Snapshots({BaseModel: _read_model})
"""Takes snapshots of plain data and of models of pydantic."""


def _as_json(model: Any) -> str | None:
    """A structured answer as JSON, by its fields: a serializer of its class is not run."""
    taken = DATA.take(model, RequestLog())
    if taken is None or isinstance(taken, Opaque):
        return None
    try:
        return json.dumps(taken, ensure_ascii=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError):
        return None


def event_fields(event: Any) -> Mapping[str, Any]:
    """The fields of a workflow's event: those that its class declares, and those that were just given."""
    return {**fields_of(event), **text_keyed(private_of(event).get("_data"))}


def private_of(model: Any) -> Mapping[str, Any]:
    """What a model of pydantic keeps beside its fields."""
    return text_keyed(in_slot(model, "__pydantic_private__"))


# Outputs


def answer_in(result: Any) -> Any:
    """The part of a result that is the answer, if its class shows which one: a workflow's result, or a stream among fields."""
    if kind_of(result) is not None or type(result) is str:
        return result
    inner = private_of(result).get("_result") if has_base(type(result), "StopEvent") else None
    if inner is not None and inner is not result:
        return answer_in(inner)
    streams = [value for value in (_fields_in(result) or {}).values() if kind_of(value) in _STREAMING]
    return streams[0] if len(streams) == 1 else result


def output_of(result: Any, log: RequestLog) -> Snapshot:
    """What a call returned: its text, or its parts, of which a later rule chooses the answer."""
    fields = None if kind_of(result) is not None or type(result) is str else _fields_in(result)
    if fields is not None:
        parts: dict[str, Snapshot] = {}
        for name, value in fields.items():
            kind = kind_of(value)
            text = text_of(value) if kind in READERS and kind not in _PARTS else value
            parts[name] = OPAQUE if are_nodes(value) else DATA.take(text, log)
        return parts
    if is_list(result):
        return None if are_nodes(result) else DATA.take(result, log)
    text = text_of(result)
    return text if text is None else log.count(text)


def _fields_in(result: Any) -> Mapping[str, Any] | None:
    """The parts of a result by their names, if it is a dictionary, an event, or a dataclass."""
    if is_dict(result):
        return text_keyed(result)
    if has_base(type(result), "StopEvent"):
        return event_fields(result)
    return fields_of(result) if dataclass_fields(type(result)) is not None else None
