"""The texts and answers in the framework's objects and the program's."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from pydantic import BaseModel

from ragspan.capturing import Opaque, RequestLog, Snapshots
from ragspan.safe_copy import (
    dataclass_fields,
    fields_of,
    in_class,
    in_slot,
    is_dict,
    is_list,
    items_of,
    number_of,
    replace_field,
    text_keyed,
)
from ragspan.safe_copy import text_of as plain_text
from ragspan_llama_index.classes import GENERATOR, KNOWN, facts_about, has_base, kind_of
from ragspan_llama_index.nodes import MAX_PARTS, are_nodes

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
        return _text_of_blocks(own["blocks"])
    text = plain_text(own.get("query_str"))
    return plain_text(own.get("content")) if text is None else text


_OF_BLOCKS = frozenset({"ChatMessage", "ToolOutput"})


def _text_of_blocks(blocks: Any) -> str | None:
    """The texts in a message's blocks, as the framework joins them."""
    own = [fields_of(block) for block in items_of(blocks) or ()]
    texts = [plain_text(each.get("text")) for each in own if plain_text(each.get("block_type")) == "text"]
    return "\n".join(text for text in texts if text is not None) if texts else None


def event_fields(event: Any) -> Mapping[str, Any]:
    """The fields of a workflow's event: those that its class declares, and those that were just given."""
    given = _private(event).get("_data")
    return {**fields_of(event), **text_keyed(given)} if given is not None and is_dict(given) else dict(fields_of(event))


def _private(model: Any) -> Mapping[str, Any]:
    """What a model of pydantic keeps beside its fields."""
    private = in_slot(model, "__pydantic_private__")
    return text_keyed(private) if private is not None and is_dict(private) else {}


# Answers

_TELLING = ("response", "answer", "result", "output", "final_answer", "final_response", "text", "message", "content")


def answer_in(result: Any) -> Any:
    """The part of a result that is the answer. In a workflow's last event it is the field with a name such as `answer`."""
    if kind_of(result) is not None or plain_text(result) is not None:
        return result
    inner = _result_of(result)
    if inner is not None and inner is not result:
        return answer_in(inner)
    parts = _parts_of(result)
    if parts is not None:
        return _telling_part(parts, result)
    if is_list(result) and (items := items_of(result)) and kind_of(items[-1]) == "ChatMessage":
        return items[-1]  # a conversation: its end is the answer
    return result


def _result_of(event: Any) -> Any:
    """What a workflow's last event holds as the result; None of anything else."""
    return _private(event).get("_result") if has_base(type(event), "StopEvent") else None


def texts_in(part: Any) -> Sequence[str]:
    """The texts in an answer that has several parts."""
    parts = _parts_of(part)
    values = list(parts.values()) if parts is not None else items_of(part) if is_list(part) else None
    return [text for one in (values or ())[:MAX_PARTS] if (text := text_in(one))]


def hand_out(result: Any, part: Any, watching: Any) -> bool:
    """Replace the stream that is the answer in a result by its watching proxy; False where the result has no such field.

    It is put where the object keeps it, so that no code of its class runs.
    """
    inner = _result_of(result)
    if inner is part and inner is not None:
        in_slot(result, "__pydantic_private__")["_result"] = watching
        return True
    if inner is not None and inner is not result:
        return hand_out(inner, part, watching)
    places = [result] if is_dict(result) else [_private(result).get("_data")]
    given = [
        (place, name)
        for place in places
        if place is not None and is_dict(place)
        for name, value in list(dict.items(place))
        if value is part and type(name) is str
    ]
    for place, name in given:
        dict.__setitem__(place, name, watching)
    own = [name for name, value in fields_of(result).items() if value is part and not is_dict(result)]
    replaced = [replace_field(result, name, watching) for name in own]
    return bool(given) or any(replaced)


def text_of(part: Any) -> str | None:
    """The text of an answer in one piece, a structured one as JSON; None if there is no text in it."""
    kind = type(part)
    if part is None or kind is str:
        return part  # type: ignore[no-any-return]  # mypy knows no exact types
    name = (KNOWN.get(id(kind)) or facts_about(kind)).response
    if name is not None:
        return None if name == GENERATOR else _READERS[name](part)
    text = plain_text(part)
    if text is not None:
        return text
    if in_class(kind, "model_dump_json") is not None:
        return _as_json(part)
    if kind is bool or (number := number_of(part)) is not None:
        return str(part if kind is bool else number)
    return _as_plain_json(part) if is_dict(part) or is_list(part) else None


def text_of_tokens(tokens: Sequence[Any]) -> str | None:
    """The text of a stream's tokens. A structured answer is streamed as objects, each more complete than the last."""
    if not tokens:
        return None
    texts = [text for token in tokens if (text := plain_text(token)) is not None]
    return "".join(texts) if texts else text_of(tokens[-1])


def _parts_of(result: Any) -> Mapping[str, Any] | None:
    """The parts of a result by their names, if it is a dictionary, an event, or a dataclass of the program's own."""
    if is_dict(result):
        return text_keyed(result)
    if has_base(type(result), "StopEvent"):
        return event_fields(result)
    module = facts_about(type(result)).module
    is_own = dataclass_fields(type(result)) is not None and not module.startswith("llama_index.")
    return fields_of(result) if is_own else None


def _telling_part(fields: Mapping[str, Any], whole: Any) -> Any:
    for name in _TELLING:
        if fields.get(name) is not None:
            return fields[name]
    # What a search or a tool brought is not an answer.
    values = [value for value in fields.values() if not are_nodes(value) and kind_of(value) != "ToolOutput"]
    answers = [value for value in values if kind_of(value) is not None]
    texts = [value for value in values if plain_text(value) is not None]
    if len(answers) == 1:
        return answers[0]
    if len(texts) == 1 and len(fields) > 1:
        return texts[0]
    return whole if values else None


def _text_attribute(part: Any) -> str | None:
    return plain_text(fields_of(part).get("response"))


def _completed_text(part: Any) -> str | None:
    return plain_text(fields_of(part).get("text"))


def _agent_text(part: Any) -> str | None:
    own = fields_of(part)
    text, structured = text_in(own.get("response")), own.get("structured_response")
    return text if text or structured is None else _as_plain_json(structured)


def _pydantic_text(part: Any) -> str | None:
    response = fields_of(part).get("response")
    return None if response is None else _as_json(response)


def _no_text(_: Any) -> str | None:
    return None


_READERS: Mapping[str, Callable[[Any], str | None]] = {
    "Response": _text_attribute,
    "PydanticResponse": _pydantic_text,
    "StreamingResponse": _no_text,
    "AsyncStreamingResponse": _no_text,
    "AgentChatResponse": _text_attribute,
    "StreamingAgentChatResponse": _no_text,
    "AgentOutput": _agent_text,
    "ChatMessage": text_in,
    "ChatResponse": lambda part: text_in(fields_of(part).get("message")),
    "CompletionResponse": _completed_text,
    "ToolOutput": text_in,
}


DATA: Final = Snapshots({BaseModel: lambda copying, value, depth: copying.state(fields_of(value), depth)})
"""Takes snapshots of plain data and of models of pydantic."""


_PLAIN: Final = Snapshots({})


def _as_json(model: Any) -> str | None:
    """A structured answer as JSON, by its fields: a serializer of its class is not run."""
    return _written(DATA.take(model, RequestLog()), separators=(",", ":"))


def _as_plain_json(value: Any) -> str | None:
    return _written(_PLAIN.take(value, RequestLog()))


def _written(taken: Any, **form: Any) -> str | None:
    try:
        return None if isinstance(taken, Opaque) else json.dumps(taken, ensure_ascii=False, **form)
    except (TypeError, ValueError, RecursionError):
        return None
