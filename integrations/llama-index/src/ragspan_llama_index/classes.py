"""What the framework's objects are, by the names of their classes' bases: nothing of the framework is imported for it."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from typing import Final, Literal, NamedTuple, TypeAlias

from ragspan.safe_copy import bases_of, by_class, class_name, in_class
from ragspan.safe_copy import text_of as plain_text

Role: TypeAlias = Literal[
    "call", "synthesis", "chunks", "search", "postprocessing", "tool", "model", "asking", "chat writer"
]
"""What a span is; spans without a role belong to the step around them.

- `call`: a query, a chat turn, a run of an agent or a workflow.
- `chunks`: the part of a synthesis that gets the nodes' texts.
- `asking`: a method of a model that fills a template and asks it through another of its methods.
- `chat writer`: reads a chat engine's stream to its end, for the user and for the memory.
"""

BEFORE_UUID: Final = slice(-37)
"""A span's id ends with a dash and a UUID; before it are the class and the method."""

STREAMS: Final = ("StreamingResponse", "AsyncStreamingResponse")
CHAT_STREAM: Final = "StreamingAgentChatResponse"
GENERATOR: Final = "generator"
RESPONSES: Final = (
    *("Response", "PydanticResponse", *STREAMS, "AgentChatResponse", CHAT_STREAM, "AgentOutput"),
    *("ChatMessage", "ChatResponse", "CompletionResponse", "ToolOutput"),
)
"""The framework's classes of responses and their parts, the first that fits."""

_PROVIDERS = "llama_index.llms."  # each provider has a package of its own below it


class ClassFacts(NamedTuple):
    """What is known of a class."""

    name: str
    bases: frozenset[str]
    """The names of those of its bases that are the framework's."""
    is_reranker: bool
    roles: Mapping[str, Role]
    """Of its methods, by what their spans' ids begin with."""
    response: str | None
    """The framework's class of responses that it is one of, or `GENERATOR`."""
    provider: str | None


def _methods(role: Role, *names: str) -> dict[str, Role]:
    """The methods of these names, each also asynchronous."""
    return dict.fromkeys([each for name in names for each in (name, re.sub("^_?", r"\g<0>a", name))], role)


_MODEL_METHODS = _methods("model", "chat", "stream_chat", "complete", "stream_complete")
_ASKING_METHODS = _methods(
    "asking", "predict", "stream", "structured_predict", "stream_structured_predict", "predict_and_call"
)
_METHODS: Mapping[str, Mapping[str, Role]] = {
    "BaseQueryEngine": _methods("call", "query"),
    "BaseChatEngine": _methods("call", "chat", "stream_chat"),
    "Workflow": {"run": "call"},
    "BaseSynthesizer": _methods("synthesis", "synthesize") | _methods("chunks", "get_response"),
    "BaseRetriever": _methods("search", "retrieve", "_retrieve"),
    "BaseNodePostprocessor": _methods("postprocessing", "_postprocess_nodes"),
    "BaseTool": {"__call__": "tool", **_methods("tool", "call")},
    "BaseLLM": _MODEL_METHODS | _ASKING_METHODS,
    "MultiModalLLM": _MODEL_METHODS,
    CHAT_STREAM: _methods("chat writer", "write_response_to_history"),
}


@by_class
def facts_about(kind: type) -> ClassFacts:
    """What is known of a class; looked up once."""
    name, module = class_name(kind), _module_of(kind)
    bases = frozenset(
        class_name(base) for base in bases_of(kind) if _module_of(base).startswith(("llama_index.", "workflows."))
    )
    methods = next((methods for base, methods in _METHODS.items() if base in bases), {})
    # The class is asked, not the object: some of the framework's responses claim to have every attribute.
    is_generator = in_class(kind, "__next__") is not None or in_class(kind, "__anext__") is not None
    return ClassFacts(
        name=name,
        bases=bases,
        is_reranker=any("rerank" in class_name(base).lower() for base in bases_of(kind)),
        roles={f"{name}.{method}": role for method, role in methods.items()},
        response=GENERATOR if is_generator else next((each for each in RESPONSES if each in bases), None),
        provider=module.removeprefix(_PROVIDERS).partition(".")[0] if module.startswith(_PROVIDERS) else None,
    )


def has_base(kind: type, name: str) -> bool:
    """Whether the framework's class of this name is among the bases."""
    return name in facts_about(kind).bases


def _module_of(kind: type) -> str:
    return plain_text(in_class(kind, "__module__")) or ""


# Some of the framework's work answers nobody: an evaluator asks an engine, an index wants summaries outside of any query.

_CALLER = 4  # frames above: before it come ragspan, the dispatcher and the wrapper of its decorator
_MOST_FRAMES = {"call": 4, "synthesis": 24, "chunks": 24}  # to look through, for each takes its time
_ANSWERING_NOBODY = ("llama_index.core.indices.", "llama_index.core.evaluation.")


def answers_nobody(role: Role) -> bool:
    """Whether an outermost step is not a request; the framework's module that calls it shows that. A bare search is none."""
    if role not in _MOST_FRAMES:
        return role in {"search", "postprocessing"}
    frame = sys._getframe(_CALLER).f_back  # noqa: SLF001  the frames before are not made then
    for _ in range(_MOST_FRAMES[role]):
        if frame is None:
            return False
        if str(frame.f_globals.get("__name__")).startswith(_ANSWERING_NOBODY):
            return True
        frame = frame.f_back
    return False
