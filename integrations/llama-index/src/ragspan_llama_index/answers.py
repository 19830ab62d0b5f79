"""The texts and answers in the framework's objects and the program's; on the request path."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from pydantic import BaseModel

from ragspan.capturing import OPAQUE, Copying, Opaque, RequestLog, Snapshot, Snapshots
from ragspan.request import ROLES, PayloadMessage
from ragspan.safe_copy import (
    fields_of,
    in_class,
    in_slot,
    is_dict,
    items_of,
    number_of,
    plain_scalar,
    text_keyed,
)
from ragspan.safe_copy import text_of as plain_text
from ragspan_llama_index.classes import KNOWN, facts_about

_OF_BLOCKS = frozenset({"ChatMessage", "ToolOutput"})


def kind_of(part: Any) -> str | None:
    """The name of the framework's class of responses that this is one of, or `GENERATOR`, else None."""
    kind = type(part)
    return (KNOWN.get(id(kind)) or facts_about(kind)).response


# Texts


def text_in(value: Any) -> str | None:
    """The text of a string, a `QueryBundle` or a `ChatMessage`."""
    kind = type(value)
    if value is None or kind is str:
        return value  # type: ignore[no-any-return]  # mypy knows no exact types
    if issubclass(kind, str):
        return plain_text(value)
    own = text_keyed(value) if issubclass(kind, dict) else fields_of(value)
    if "blocks" in own and kind_of(value) in _OF_BLOCKS:
        blocks = [fields_of(block) for block in items_of(own["blocks"]) or ()]
        texts = [plain_text(each.get("text")) for each in blocks if plain_text(each.get("block_type")) == "text"]
        return "\n".join(text for text in texts if text is not None) if texts else None
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
    name = (KNOWN.get(id(kind)) or facts_about(kind)).response
    if name is not None:
        return READERS[name](part) if name in READERS else None  # a stream has no text yet
    text = plain_text(part)
    if text is not None:
        return text
    if in_class(kind, "model_dump_json") is not None:
        return _as_json(part)
    if kind is bool or (number := number_of(part)) is not None:
        return str(part if kind is bool else number)
    return None


def text_of_tokens(tokens: Sequence[Any]) -> str | None:
    """The text of a stream's tokens. A structured answer is streamed as objects, each more complete than the last."""
    if not tokens:
        return None
    texts = [text for token in tokens if (text := plain_text(token)) is not None]
    return "".join(texts) if texts else text_of(tokens[-1])


def _agent_text(part: Any) -> str | None:
    own = fields_of(part)
    text, structured = text_in(own.get("response")), own.get("structured_response")
    return text if text or structured is None else _as_json(structured)


def _structured_text(part: Any) -> str | None:
    response = fields_of(part).get("response")
    return None if response is None else _as_json(response)


READERS: Final[Mapping[str | None, Callable[[Any], str | None]]] = {
    "Response": lambda part: plain_text(fields_of(part).get("response")),
    "PydanticResponse": _structured_text,
    "AgentChatResponse": lambda part: plain_text(fields_of(part).get("response")),
    "AgentOutput": _agent_text,
    "ChatMessage": text_in,
    "ChatResponse": lambda part: text_in(fields_of(part).get("message")),
    "CompletionResponse": lambda part: plain_text(fields_of(part).get("text")),
    "ToolOutput": text_in,
}


# Structures


def _read_model(copying: Copying, value: Any, depth: int) -> Snapshot:
    """A model of pydantic by its fields; the framework's own by their texts, but for what a search or a tool brought."""
    facts = facts_about(type(value))
    if facts.response == "ToolOutput" or not facts.bases.isdisjoint({"NodeWithScore", "BaseNode"}):
        return OPAQUE
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
    try:
        return None if isinstance(taken, Opaque) else json.dumps(taken, ensure_ascii=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError):
        return None


def event_fields(event: Any) -> Mapping[str, Any]:
    """The fields of a workflow's event: those that its class declares, and those that were just given."""
    given = private_of(event).get("_data")
    return {**fields_of(event), **text_keyed(given)} if given is not None and is_dict(given) else dict(fields_of(event))


def private_of(model: Any) -> Mapping[str, Any]:
    """What a model of pydantic keeps beside its fields."""
    private = in_slot(model, "__pydantic_private__")
    return text_keyed(private) if private is not None and is_dict(private) else {}
