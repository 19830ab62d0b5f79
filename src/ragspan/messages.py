"""The texts of an answer's steps that only spans show: messages, input and output of tools, and errors."""

from __future__ import annotations

import traceback
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from types import CodeType, TracebackType
from typing import Any, Final, NamedTuple

from ragspan.safe_copy import bases_of, class_name, texts_among

MAX_MESSAGE: Final = 8192
MAX_STACKTRACE: Final = 8000
TOOL_ERROR: Final = "tool_error"
"""The type of an error of which only the tool's result tells, as in OpenTelemetry's conventions for MCP."""
_MAX_FRAMES: Final = 40
# Event loops have their own classes for cancellations, with a common name.
_ABANDONMENTS: Final = frozenset({"CancelledError", "GeneratorExit", "KeyboardInterrupt"})
_PLAIN: Final = frozenset({str, int, float, bool, type(None)})
_ARGUMENTS: Callable[[BaseException], tuple[Any, ...]] = vars(BaseException)["args"].__get__
_CONTEXT: Callable[[BaseException], BaseException | None] = vars(BaseException)["__context__"].__get__
_TRACEBACK: Callable[[BaseException], TracebackType | None] = vars(BaseException)["__traceback__"].__get__


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
    """An error's message and traceback. It may quote users, so it is sent only where their texts are."""

    type: str
    """With its module, where that is known."""
    message: str
    stacktrace: str
    """As Python prints it."""

    @property
    def name(self) -> str:
        return self.type.rpartition(".")[2]

    def is_a(self, name: str) -> bool:
        """Whether its class has this name; its base classes are not known."""
        return self.name == name

    def report(self) -> ErrorReport:
        return self


class NotedError(NamedTuple):
    """An error as the request path records it: without frames, which would keep the request's objects alive."""

    kind: type[BaseException]
    message: str
    places: Sequence[tuple[CodeType, int]]
    """Code and line of the innermost frames, the outermost first."""

    @property
    def name(self) -> str:
        return self.kind.__name__

    def is_a(self, name: str) -> bool:
        """Whether its class or a base class has this name."""
        return any(base.__name__ == name for base in self.kind.__mro__)

    def report(self) -> ErrorReport:
        """The report. It reads source files, so only the worker calls it."""
        kind = self.kind
        name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
        frames = [traceback.FrameSummary(code.co_filename, line, code.co_name) for code, line in self.places]
        lines = traceback.StackSummary.from_list(frames).format()
        while sum(map(len, lines)) > MAX_STACKTRACE:  # the line that raised is at the end
            del lines[0]
        said = f"{name}: {self.message}" if self.message else name
        stacktrace = "".join(["Traceback (most recent call last):\n", *lines, said])
        return ErrorReport(type=name, message=self.message, stacktrace=stacktrace)


def is_abandonment(error: BaseException) -> bool:
    """Whether this error means that the reader or a cancellation stopped the answer, not that it failed."""
    # A coroutine that was closed may raise another error while it ends.
    return type(_CONTEXT(error)) is GeneratorExit or any(
        class_name(base) in _ABANDONMENTS for base in bases_of(type(error))
    )


def note_error(error: BaseException) -> NotedError:
    """Record an error's message and where it was raised. No `__str__` of the program's runs: it may load what it describes."""
    places: deque[tuple[CodeType, int]] = deque(maxlen=_MAX_FRAMES)
    raised_in: TracebackType | None = _TRACEBACK(error)
    while raised_in is not None:
        places.append((raised_in.tb_frame.f_code, raised_in.tb_lineno or 0))
        raised_in = raised_in.tb_next
    given = _ARGUMENTS(error)
    is_plain = type(error).__module__ == "builtins" and _PLAIN.issuperset(map(type, given))
    message = str(error) if is_plain else "\n".join(texts_among(given))
    return NotedError(type(error), message[:MAX_MESSAGE], tuple(places))


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
