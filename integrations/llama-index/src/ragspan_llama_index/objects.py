"""What the framework's objects are, by their classes, and the texts and answers in them.

Classes are recognised by the names of their bases, so nothing of the framework is imported for it.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from types import FrameType
from typing import Any, Final, Literal, NamedTuple, TypeAlias

Role: TypeAlias = Literal[
    "call", "synthesis", "chunks", "search", "postprocessing", "tool", "model", "asking", "chat writer"
]
"""What a span is; spans without a role belong to the step around them.

- `call`: a query, a chat turn, a run of an agent or a workflow.
- `chunks`: the part of a synthesis that gets the nodes' texts.
- `asking`: a method of a model that asks it through another of its methods.
- `chat writer`: reads a chat engine's stream to its end, for the user and for the memory.
"""

SPEAKING: Final = frozenset({"call", "synthesis", "model"})
"""Steps whose result may be an answer."""

UUID_LENGTH: Final = 37
"""A span's id ends with a dash and a UUID."""

# Classes


class ClassFacts(NamedTuple):
    """What is known of a class, as plain data: a log can be read without the framework."""

    name: str
    module: str
    bases: frozenset[str]
    """The names of those of its bases that are the framework's."""
    is_reranker: bool = False
    methods: Mapping[str, Role] = {}
    method_start: int = 0
    """Where the name of a method begins in a span's id."""
    response: str | None = None
    """The framework's class of responses that it is one of, or `GENERATOR`."""


def _all(role: Role, *methods: str) -> Mapping[str, Role]:
    return dict.fromkeys(methods, role)


_MODEL_METHODS = (
    *("chat", "achat", "stream_chat", "astream_chat"),
    *("complete", "acomplete", "stream_complete", "astream_complete"),
)
_ASKING_METHODS = (
    *("predict", "apredict", "stream", "astream", "structured_predict", "astructured_predict"),
    *("stream_structured_predict", "astream_structured_predict", "predict_and_call", "apredict_and_call"),
)
_METHODS: Mapping[str, Mapping[str, Role]] = {
    "BaseQueryEngine": _all("call", "query", "aquery"),
    "BaseChatEngine": _all("call", "chat", "achat", "stream_chat", "astream_chat"),
    "Workflow": _all("call", "run"),
    "BaseSynthesizer": {
        **_all("synthesis", "synthesize", "asynthesize"),
        **_all("chunks", "get_response", "aget_response"),
    },
    "BaseRetriever": _all("search", "retrieve", "aretrieve", "_retrieve", "_aretrieve"),
    "BaseNodePostprocessor": _all("postprocessing", "_postprocess_nodes", "_apostprocess_nodes"),
    "BaseTool": _all("tool", "call", "acall", "__call__"),
    "BaseLLM": {**_all("model", *_MODEL_METHODS), **_all("asking", *_ASKING_METHODS)},
    "MultiModalLLM": _all("model", *_MODEL_METHODS),
    "StreamingAgentChatResponse": _all("chat writer", "write_response_to_history", "awrite_response_to_history"),
}
_MAX_KNOWN = 1_000  # classes made at run time must not be kept for ever
KNOWN: Final[dict[type, ClassFacts]] = {}
"""What `facts_about` has looked up."""


def facts_about(kind: type) -> ClassFacts:
    """What is known of a class; looked up once."""
    facts = KNOWN.get(kind)
    if facts is None:
        if len(KNOWN) >= _MAX_KNOWN:
            KNOWN.clear()
        facts = KNOWN[kind] = _look_up(kind)
    return facts


def has_base(kind: type, name: str) -> bool:
    """Whether the framework's class of this name is among the bases."""
    return name in facts_about(kind).bases


def kind_of(part: Any) -> str | None:
    """The name of the framework's class of responses that this is one of, or `GENERATOR`, else None."""
    kind = type(part)
    return (KNOWN.get(kind) or facts_about(kind)).response


def _look_up(kind: type) -> ClassFacts:
    bases = frozenset(
        base.__name__ for base in kind.__mro__ if base.__module__.startswith(("llama_index.", "workflows."))
    )
    # The class is asked, not the object: some of the framework's responses claim to have every attribute.
    is_generator = hasattr(kind, "__next__") or hasattr(kind, "__anext__")
    return ClassFacts(
        name=kind.__name__,
        module=kind.__module__,
        bases=bases,
        is_reranker=any("rerank" in base.__name__.lower() for base in kind.__mro__),
        methods=next((methods for name, methods in _METHODS.items() if name in bases), {}),
        method_start=len(kind.__name__) + 1,
        response=GENERATOR if is_generator else next((name for name in _READERS if name in bases), None),
    )


# Some of the framework's work answers nobody. The code that calls it shows that.

_FIRST_FRAME = 5  # of the caller: before it come ragspan, the dispatcher and the wrapper of its decorator
_INDEX_FRAMES = 24  # between a synthesizer's span and the index that called it there are about five
_INDICES = "llama_index.core.indices."  # they ask for summaries outside of any query
_EVALUATING = frozenset({"aevaluate", "evaluate"})
_EVALUATOR_FRAMES = 4  # between an engine's span and the evaluator that asks it there is hardly any


def answers_nobody(role: Role) -> bool:
    """Whether an outermost step is no request: a bare search, an evaluator's question, an index that wants a summary."""
    if role == "call":
        most, is_call = _EVALUATOR_FRAMES, True
    elif role in {"synthesis", "chunks"}:
        most, is_call = _INDEX_FRAMES, False
    else:
        return role in {"search", "postprocessing"}
    try:
        frame: FrameType | None = sys._getframe(_FIRST_FRAME)  # noqa: SLF001  the frames before are not made then
    except ValueError:  # the stack is not that deep
        return False
    for _ in range(most):  # few of them, for each takes its time
        if frame is None:
            return False
        if is_call:
            if frame.f_code.co_name in _EVALUATING and has_base(type(frame.f_locals.get("self")), "BaseEvaluator"):
                return True
        elif str(frame.f_globals.get("__name__")).startswith(_INDICES):
            return True
        frame = frame.f_back
    return False


# Texts


def text_in(value: Any) -> str | None:
    """The text of a string, a `QueryBundle` or a `ChatMessage`."""
    if isinstance(value, str):
        return value
    # A model of pydantic takes long to say that it lacks an attribute.
    for name in ("content",) if kind_of(value) == "ChatMessage" else ("query_str", "content"):
        try:
            text = value.get(name) if isinstance(value, dict) else getattr(value, name, None)
        except Exception:  # noqa: BLE001  a program's own property: the other texts count all the same
            return None
        if isinstance(text, str):
            return text
    return None


def fields_of(event: Any) -> Mapping[str, Any]:
    """The fields of a workflow's event: those that its class declares, and those that were just given."""
    declared = getattr(event, "__dict__", None) or {}
    private = getattr(event, "__pydantic_private__", None) or {}
    given = private.get("_data")
    return {**declared, **given} if isinstance(given, dict) else dict(declared)


def are_nodes(items: Any) -> bool:
    """Whether this is a list of nodes, with or without scores."""
    if not isinstance(items, (list, tuple)) or not items:
        return False
    return all(not facts_about(type(item)).bases.isdisjoint({"NodeWithScore", "BaseNode"}) for item in items)


def nodes_among(value: Any, depth: int = 2) -> Sequence[Any]:
    """The nodes in what a tool returned: the value itself, or in lists and dictionaries not too deep."""
    if are_nodes(value):
        return list(value)
    if not isinstance(value, (list, tuple, dict)):
        return [value] if are_nodes([value]) else []
    items = islice(value.values() if isinstance(value, dict) else value, _MAX_PARTS if depth else 0)
    return [node for item in items for node in nodes_among(item, depth - 1)]


# Answers

_TELLING = ("response", "answer", "result", "output", "final_answer", "final_response", "text", "message", "content")

STREAMS: Final = ("StreamingResponse", "AsyncStreamingResponse")
CHAT_STREAM: Final = "StreamingAgentChatResponse"
GENERATOR: Final = "generator"
_MAX_PARTS = 100


def answer_in(result: Any) -> Any:
    """The part of a result that is the answer. In a workflow's last event it is the field with a name such as `answer`."""
    if kind_of(result) is not None or isinstance(result, str):
        return result
    if has_base(type(result), "StopEvent") and result.result is not None and result.result is not result:
        return answer_in(result.result)
    parts = _parts_of(result)
    if parts is not None:
        return _telling_part(parts, result)
    if isinstance(result, list) and result and kind_of(result[-1]) == "ChatMessage":
        return result[-1]  # a conversation: its end is the answer
    return result


def texts_in(part: Any) -> Sequence[str]:
    """The texts in an answer that has several parts."""
    parts = _parts_of(part)
    values = part if parts is None else list(parts.values())
    return [text for one in values[:_MAX_PARTS] if (text := text_in(one))] if isinstance(values, (list, tuple)) else ()


def hand_out(result: Any, part: Any, watching: Any) -> bool:
    """Replace the stream that is the answer in a result by its watching proxy; False where the result has no such field."""
    if has_base(type(result), "StopEvent"):
        inner = result.result
        if inner is part:
            result._result = watching  # noqa: SLF001  the event is the program's, and has no other way
            return True
        if inner is not None and inner is not result:
            return hand_out(inner, part, watching)
    names = [name for name, value in (_parts_of(result) or {}).items() if value is part]
    for name in names:
        if isinstance(result, dict):
            result[name] = watching
        else:
            setattr(result, name, watching)
    return bool(names)


def text_of(part: Any) -> str | None:
    """The text of an answer in one piece, a structured one as JSON; None if there is no text in it."""
    if part is None or isinstance(part, str):
        return part
    kind = type(part)
    name = (KNOWN.get(kind) or facts_about(kind)).response
    if name is not None:
        return None if name == GENERATOR else _READERS[name](part)
    if hasattr(type(part), "model_dump_json"):
        return _as_json(part)
    if isinstance(part, (int, float)):
        return str(part)
    return _as_plain_json(part) if isinstance(part, (dict, list, tuple)) else None


def text_of_tokens(tokens: Sequence[Any]) -> str | None:
    """The text of a stream's tokens. A structured answer is streamed as objects, each more complete than the last."""
    if not tokens:
        return None
    texts = [token for token in tokens if isinstance(token, str)]
    return "".join(texts) if texts else text_of(tokens[-1])


def _parts_of(result: Any) -> Mapping[str, Any] | None:
    """The parts of a result by their names, if it is a dictionary, an event, or a dataclass of the program's own."""
    if isinstance(result, dict):
        return result
    if has_base(type(result), "StopEvent"):
        return fields_of(result)
    is_own = dataclasses.is_dataclass(result) and not type(result).__module__.startswith("llama_index.")
    return getattr(result, "__dict__", {}) if is_own else None


def _telling_part(fields: Mapping[str, Any], whole: Any) -> Any:
    for name in _TELLING:
        if name in fields and fields[name] is not None:
            return fields[name]
    # What a search or a tool brought is no answer.
    values = [value for value in fields.values() if not are_nodes(value) and kind_of(value) != "ToolOutput"]
    answers = [value for value in values if kind_of(value) is not None]
    texts = [value for value in values if isinstance(value, str)]
    if len(answers) == 1:
        return answers[0]
    if len(texts) == 1 and len(fields) > 1:
        return texts[0]
    return whole if values else None


def _text_attribute(part: Any) -> str | None:
    text = part.response
    return text if isinstance(text, str) else None


def _completed_text(part: Any) -> str | None:
    text = part.text
    return text if isinstance(text, str) else None


def _agent_text(part: Any) -> str | None:
    text = text_in(part.response)
    return text if text or part.structured_response is None else _as_plain_json(part.structured_response)


def _no_text(_: Any) -> str | None:
    return None


_READERS: Mapping[str, Callable[[Any], str | None]] = {
    "Response": _text_attribute,
    "PydanticResponse": lambda part: None if part.response is None else _as_json(part.response),
    "StreamingResponse": _no_text,
    "AsyncStreamingResponse": _no_text,
    "AgentChatResponse": _text_attribute,
    "StreamingAgentChatResponse": _no_text,
    "AgentOutput": _agent_text,
    "ChatMessage": text_in,
    "ChatResponse": lambda part: text_in(part.message),
    "CompletionResponse": _completed_text,
    "ToolOutput": text_in,
}


def _as_json(model: Any) -> str | None:
    try:
        return str(model.model_dump_json())
    except Exception:  # noqa: BLE001  a program's own class
        return str(model)


def _as_plain_json(value: Any) -> str | None:
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return None
