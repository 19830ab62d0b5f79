"""Which part a span plays in a request, told from the framework's class and method behind it.

Classes are recognised by the names of their bases, so that nothing of the framework has to be imported for it.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import FrameType
from typing import Any, Final, NamedTuple, TypeAlias

Role: TypeAlias = str
"""What a span stands for; spans without a role belong to the step around them."""

CALL: Final = "call"
"""A query, a chat turn, a run of an agent or a workflow."""
SYNTHESIS: Final = "synthesis"
"""A synthesizer at work on nodes."""
CHUNKS: Final = "chunks"
"""The part of a synthesis that is given the nodes' texts."""
SEARCH: Final = "search"
POSTPROCESSING: Final = "postprocessing"
TOOL: Final = "tool"
MODEL: Final = "model"
ASKING: Final = "asking"
"""A method of a model that asks it through another one."""
CHAT_WRITER: Final = "chat writer"
"""Reads a chat engine's stream to its end, for the user and for the memory."""

STEPS: Final = frozenset({CALL, SYNTHESIS, SEARCH, POSTPROCESSING, TOOL, MODEL, CHAT_WRITER})
"""What becomes a step of its own."""
SPEAKING: Final = frozenset({CALL, SYNTHESIS, MODEL})
"""Steps whose result may be an answer."""

UUID_LENGTH: Final = 37
"""A span's id ends with a dash and a UUID."""


class ClassFacts(NamedTuple):
    """What is known of a class, in plain data, so that a log of it can be read without the framework."""

    name: str
    module: str
    bases: frozenset[str]
    """The names of those of its bases that are the framework's."""
    is_reranker: bool
    methods: Mapping[str, Role]
    method_start: int
    """Where the name of a method begins in a span's id."""


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
    "BaseQueryEngine": _all(CALL, "query", "aquery"),
    "BaseChatEngine": _all(CALL, "chat", "achat", "stream_chat", "astream_chat"),
    "Workflow": _all(CALL, "run"),
    "BaseSynthesizer": {
        **_all(SYNTHESIS, "synthesize", "asynthesize"),
        **_all(CHUNKS, "get_response", "aget_response"),
    },
    "BaseRetriever": _all(SEARCH, "retrieve", "aretrieve", "_retrieve", "_aretrieve"),
    "BaseNodePostprocessor": _all(POSTPROCESSING, "_postprocess_nodes", "_apostprocess_nodes"),
    "BaseTool": _all(TOOL, "call", "acall", "__call__"),
    "BaseLLM": {**_all(MODEL, *_MODEL_METHODS), **_all(ASKING, *_ASKING_METHODS)},
    "MultiModalLLM": _all(MODEL, *_MODEL_METHODS),
    "StreamingAgentChatResponse": _all(CHAT_WRITER, "write_response_to_history", "awrite_response_to_history"),
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


def _look_up(kind: type) -> ClassFacts:
    bases = frozenset(
        base.__name__ for base in kind.__mro__ if base.__module__.startswith(("llama_index.", "workflows."))
    )
    return ClassFacts(
        name=kind.__name__,
        module=kind.__module__,
        bases=bases,
        is_reranker=any("rerank" in base.__name__.lower() for base in kind.__mro__),
        methods=next((methods for name, methods in _METHODS.items() if name in bases), {}),
        method_start=len(kind.__name__) + 1,
    )


# Work of the framework that answers nobody is told from an answer by the code that calls it.

_FIRST_FRAME = 5  # of the caller: before it come ragspan, the dispatcher and its decorator
_INDEX_FRAMES = 25  # between a synthesizer's span and the index that called it there are about five
_EVALUATOR_FRAMES = 5  # between an engine's span and the evaluator that asks it there is hardly any


def builds_an_index() -> bool:
    """Whether the caller is called by the framework's own indices, outside of any query: they ask for summaries."""
    return any(
        str(frame.f_globals.get("__name__", "")).startswith("llama_index.core.indices.")
        for frame in _callers(_INDEX_FRAMES)
    )


def evaluates() -> bool:
    """Whether the caller is called by an evaluator, which asks an engine of its own whether an answer is good."""
    return any(
        frame.f_code.co_name in {"aevaluate", "evaluate"}
        and has_base(type(frame.f_locals.get("self")), "BaseEvaluator")
        for frame in _callers(_EVALUATOR_FRAMES)
    )


def _callers(most: int) -> list[FrameType]:
    """The frames around a span; few of them, for each takes its time."""
    callers: list[FrameType] = []
    try:
        frame: FrameType | None = sys._getframe(_FIRST_FRAME)  # noqa: SLF001  the others are not made then
    except ValueError:  # the stack is not that deep
        frame = None
    while frame is not None and len(callers) < most:
        callers.append(frame)
        frame = frame.f_back
    return callers


def method_of(span_id: str, class_name: str) -> str:
    """The method behind a span of an instance of this class."""
    return span_id[len(class_name) + 1 : -UUID_LENGTH]


def argument(arguments: Mapping[str, Any], name: str | None, place: int) -> Any:
    """An argument by its name, or by its place where a program's own method names it otherwise."""
    if name is not None and name in arguments:
        return arguments[name]
    values = iter(arguments.values())
    for _ in range(place):
        next(values, None)
    return next(values, None)
