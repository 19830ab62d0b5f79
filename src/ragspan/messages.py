"""The texts of an answer's steps that only spans show: messages, input and output of tools, and errors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from ragspan.safe_copy import bases_of, class_name, texts_among

MAX_MESSAGE: Final = 8192
TOOL_ERROR: Final = "tool_error"
"""The type of an error of which only the tool's result tells, as in OpenTelemetry's conventions for MCP."""
# Event loops have their own classes for cancellations, with a common name.
_ABANDONMENTS: Final = frozenset({"CancelledError", "GeneratorExit", "KeyboardInterrupt"})
_PLAIN: Final = frozenset({str, int, float, bool, type(None)})
_ARGUMENTS: Callable[[BaseException], tuple[Any, ...]] = vars(BaseException)["args"].__get__
_CONTEXT: Callable[[BaseException], BaseException | None] = vars(BaseException)["__context__"].__get__


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolRequest:
    """A model's request that a tool be called."""

    name: str
    arguments: str | None = None
    """As JSON."""
    id: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Message:
    """One message of a prompt, or a model's reply."""

    role: str
    """`system`, `user`, `assistant` or `tool`."""
    text: str
    tool_requests: tuple[ToolRequest, ...] = ()
    tool_call_id: str | None = None
    """Of a tool's message: the request that it answers."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ErrorReport:
    """An error's type and message, which may quote users, so it is sent only where their texts are."""

    type: str
    """With its module, where that is known."""
    message: str

    @property
    def name(self) -> str:
        return self.type.rpartition(".")[2]


LEFT: Final = ErrorReport(type="GeneratorExit", message="")
"""The reader left, or the caller cancelled."""


def is_abandonment(error: BaseException) -> bool:
    """Whether this error means that the reader or a cancellation stopped the answer, not that it failed."""
    # A coroutine that was closed may raise another error while it ends.
    return type(_CONTEXT(error)) is GeneratorExit or any(
        class_name(base) in _ABANDONMENTS for base in bases_of(type(error))
    )


def note_error(error: BaseException, *, with_message: bool = True) -> ErrorReport:
    """Record an error's type and message. No `__str__` of the program's runs: it may load what it describes."""
    kind = type(error)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    given = _ARGUMENTS(error) if with_message else ()
    is_plain = kind.__module__ == "builtins" and with_message and _PLAIN.issuperset(map(type, given))
    message = str(error) if is_plain else "\n".join(texts_among(given))
    return ErrorReport(type=name, message=message[:MAX_MESSAGE])


def without_texts(step: Any) -> Any:
    """The step, or the record with its steps, without these texts. A reranking also loses its documents', which its search has."""
    empty: dict[str, Any] = {"error": None, "arguments": None, "result": None, "prompt": (), "reply": None}
    left_out = {name: value for name, value in empty.items() if hasattr(step, name)}
    if hasattr(step, "given"):  # a reranking
        bare = {name: tuple(replace(one, text="") for one in getattr(step, name)) for name in ("given", "contexts")}
        left_out |= {"query": None, **bare}
    for kind in ("tool_calls", "retrievals", "rerankings", "generations"):  # a record
        if steps := getattr(step, kind, ()):
            left_out[kind] = tuple(map(without_texts, steps))
    return replace(step, **left_out) if left_out else step
