"""The log of a request: what an integration notes of it while it runs.

A log is written on the request path, by all threads of the request, which only append to it, and read in the worker once the
request is over. An integration's *fold*, a pure function, makes the record of it, so the request path matches and decides
nothing. Every change is a single operation that is atomic under the interpreter's lock.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from time import time_ns
from typing import Any, NamedTuple, TypeAlias

from ragspan.records import RagRecord, SpanAnchor
from ragspan.safe_copy import PART_BYTES

RunKey: TypeAlias = int | str  # the key of a framework's run or span; unique in this process

_EVENT_PARTS = 4  # an event of a log, its time and its keys
_SIZE_OF_TEXT = str.__sizeof__  # is known without reading the text


class EventKind(enum.Enum):
    """What may happen in a request. Who reads a log ignores kinds that it does not know."""

    START = enum.auto()  # a step begins; `about` says what it is
    END = enum.auto()
    ERROR = enum.auto()  # a step ends with an error, which is the payload
    CONTEXTS = enum.auto()  # the program names contexts with `record_contexts`
    DOCUMENTS = enum.auto()  # the program shows documents or data, by the name in `about`
    INTERRUPT = enum.auto()  # a graph stops to wait for a person
    AGAIN = enum.auto()  # a start comes again: the handler is there twice
    READ = enum.auto()  # a model's stream has been read to its end; the payload is its reply
    FILLED = enum.auto()  # a step filled a template, for the models inside it, with the values in the payload
    REREAD = enum.auto()
    """Documents that the program had changed in place until now, each with its text as it is now."""


Event: TypeAlias = tuple[EventKind, Any, RunKey | None, int, Any, Any]
"""The kind, the run, for starts the run around it, the time in nanoseconds, what was given or came out as a snapshot, and what else
the framework says of it: a plain tuple, which is made in a third of the time of a named one."""


class TokenStream:
    """The tokens of one call of a model, appended as they come."""

    def __init__(self) -> None:
        self.first_ns = time_ns()
        self.tokens: list[Any] = []
        self.last_chunk: Any = None
        """The framework's own object that came with the last token; what is kept of it once the request is over."""


class RequestLog:
    """Notes what happened in a request, in order, and what the integration read from the context when it began.

    Once it is over it is a `Capture`.

    Args:
        fold: makes the record, in the worker.
        grow: makes the tree of a log that is inside another request.
        grouped: it is what happened inside a `ragspan.capture` block, or another framework's request: its runs have no common root.
    """

    root: RunKey | None = None  # the outermost run; None in a block
    ended_ns = 0
    over = False
    abandoned = False  # it never ended, or not for too long
    anchor: SpanAnchor | None = None  # the span that the answer belongs under
    earlier: tuple[RequestLog, ...] = ()  # the interrupted requests that this one continues
    span_finder: Callable[[], SpanAnchor | None] | None = None
    """Finds the span that another instrumentation makes for the request; None once it is the anchor."""
    parts = 0  # what the containers in its snapshots hold
    bytes = 0  # the size of all that it holds; known when it is over

    def __init__(self, fold: Fold | None = None, grow: Grow | None = None, *, grouped: bool = False) -> None:
        self.grouped = grouped
        self.started_ns = time_ns()
        self.about: dict[str, Any] = {}  # what the integration notes of the request as a whole
        self.events: list[Event] = []
        self.streams: dict[RunKey, TokenStream] = {}
        self.nested: dict[int, NestedLog] = {}  # what others note inside of it, by the identity of their `OpenRequests`
        self.keys: list[RunKey] = []  # all runs that were followed
        self.texts: dict[int, str] = {}  # the texts in snapshots by identity, each once, for the size
        self.kept: dict[Any, tuple[Any, Any]] = {}
        """The program's documents by identity, each with its snapshot, and lists by their items' identities. They stay alive
        until the request is over, so that an identity means the same document all the time."""
        self._fold = fold
        self._grow = grow

    @property
    def size_hint(self) -> int:
        return self.bytes + sum(log.bytes for log in self.earlier) if self.earlier else self.bytes

    def to_record(self) -> RagRecord | None:
        return None if self._fold is None else self._fold(self)

    def tree_inside(self, around: Mapping[RunKey, Any]) -> Any:
        """The tree of a log that is inside another request, by the steps of that one in which its outermost runs began."""
        return None if self._grow is None else self._grow(self, around)

    def note(
        self, kind: EventKind, run: RunKey, parent: RunKey | None = None, payload: Any = None, about: Any = None
    ) -> None:
        """Append an event that happens now."""
        self.events.append((kind, run, parent, time_ns(), payload, about))

    def count(self, text: str) -> str:
        """Count a text for the size of the request, each one once."""
        self.texts[id(text)] = text
        return text

    def find_span(self) -> None:
        """Take the span that another instrumentation makes for this request as its anchor, as soon as there is one.

        It may hear of a start after us.
        """
        anchor = None if self.span_finder is None else self.span_finder()
        if anchor is not None:
            self.anchor, self.span_finder = anchor, None

    def release(self) -> None:
        """Release the program's documents and sum up what stays in the snapshots."""
        parts = self.parts + _EVENT_PARTS * len(self.events) + len(self.keys)
        if self.streams:
            parts += sum(len(stream.tokens) for stream in list(self.streams.values()))
        self.bytes = sum(map(_SIZE_OF_TEXT, list(self.texts.values()))) + PART_BYTES * parts
        self.bytes += sum(inner.log.bytes for inner in list(self.nested.values()))
        self.kept.clear()
        self.texts.clear()


Fold: TypeAlias = Callable[[RequestLog], RagRecord | None]
"""Makes the record of a finished log; None when nothing was answered. Pure, and called in the worker."""

Grow: TypeAlias = Callable[[RequestLog, Mapping[RunKey, Any]], Any]
"""Makes the tree of a log inside another request."""


class NestedLog(NamedTuple):
    """What one integration notes inside another one's request."""

    log: RequestLog
    end: Callable[[RequestLog], object]  # ends it
    around: dict[RunKey, RunKey]  # by its outermost runs, the other request's runs that they began in
