"""Which part a span plays in a request, told from the framework's class and method behind it.

Classes are recognised by the names of their bases, so that nothing of the framework has to be imported for it.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any


class Role(enum.Enum):
    """What a span stands for; spans without a role belong to the step around them."""

    CALL = "call"
    """A query, a chat turn, a run of an agent or a workflow."""
    SYNTHESIS = "synthesis"
    """A synthesizer at work on nodes."""
    CHUNKS = "chunks"
    """The part of a synthesis that is given the nodes' texts."""
    SEARCH = "search"
    POSTPROCESSING = "postprocessing"
    TOOL = "tool"
    MODEL = "model"
    ASKING = "asking"
    """A method of a model that asks it through another one."""
    CHAT_WRITER = "chat writer"
    """Reads a chat engine's stream to its end, for the user and for the memory."""

    __hash__ = object.__hash__  # an enum's own is a Python call, and roles are looked up at every span


# To look a member up in its class takes long enough to be seen on the request path.
CALL, SYNTHESIS, CHUNKS, SEARCH = Role.CALL, Role.SYNTHESIS, Role.CHUNKS, Role.SEARCH
POSTPROCESSING, TOOL, CHAT_WRITER = Role.POSTPROCESSING, Role.TOOL, Role.CHAT_WRITER
MODEL, ASKING = Role.MODEL, Role.ASKING

_UUID_LENGTH = 37  # a span's id ends with a dash and a UUID

_Methods = Mapping[str, Role]


def _all(role: Role, *methods: str) -> _Methods:
    return dict.fromkeys(methods, role)


_MODEL_METHODS = (
    *("chat", "achat", "stream_chat", "astream_chat"),
    *("complete", "acomplete", "stream_complete", "astream_complete"),
)
_ASKING_METHODS = (
    *("predict", "apredict", "stream", "astream", "structured_predict", "astructured_predict"),
    *("stream_structured_predict", "astream_structured_predict", "predict_and_call", "apredict_and_call"),
)
_METHODS: Mapping[str, _Methods] = {
    "BaseQueryEngine": _all(Role.CALL, "query", "aquery"),
    "BaseChatEngine": _all(Role.CALL, "chat", "achat", "stream_chat", "astream_chat"),
    "Workflow": _all(Role.CALL, "run"),
    "BaseSynthesizer": {
        **_all(Role.SYNTHESIS, "synthesize", "asynthesize"),
        **_all(Role.CHUNKS, "get_response", "aget_response"),
    },
    "BaseRetriever": _all(Role.SEARCH, "retrieve", "aretrieve", "_retrieve", "_aretrieve"),
    "BaseNodePostprocessor": _all(Role.POSTPROCESSING, "_postprocess_nodes", "_apostprocess_nodes"),
    "BaseTool": _all(Role.TOOL, "call", "acall", "__call__"),
    "BaseLLM": {**_all(Role.MODEL, *_MODEL_METHODS), **_all(Role.ASKING, *_ASKING_METHODS)},
    "MultiModalLLM": _all(Role.MODEL, *_MODEL_METHODS),
    "StreamingAgentChatResponse": _all(Role.CHAT_WRITER, "write_response_to_history", "awrite_response_to_history"),
}
_NONE: _Methods = {}
_MAX_KNOWN = 1_000  # classes made at run time must not be kept for ever
_known: dict[type, _Methods] = {}


def role_of(span_id: str, instance: Any) -> Role | None:
    """The role of the span with this id, whose method belongs to `instance`."""
    kind = type(instance)
    methods = _known.get(kind)
    if methods is None:
        if len(_known) >= _MAX_KNOWN:
            _known.clear()
        methods = _known[kind] = _methods_of(kind)
    # Written out: this is asked at every span.
    return methods.get(span_id[len(kind.__name__) + 1 : -_UUID_LENGTH]) if methods else None


def method_of(span_id: str, class_name: str) -> str:
    """The method behind a span of an instance of this class."""
    return span_id[len(class_name) + 1 : -_UUID_LENGTH]


def has_base(kind: type, name: str) -> bool:
    """Whether the framework's class of this name is among the bases."""
    return any(base.__name__ == name and _is_of_framework(base) for base in kind.__mro__)


def _methods_of(kind: type) -> _Methods:
    return next((methods for name, methods in _METHODS.items() if has_base(kind, name)), _NONE)


def _is_of_framework(kind: type) -> bool:
    return kind.__module__.startswith(("llama_index.", "workflows."))
