"""The log of a request: what an integration notes of it while it runs. Threads only append to it.

A log is written on the request path, by all threads of the request, and read in the worker once the request is over. An
integration's *fold*, a pure function, makes the record of it, so the request path matches and decides nothing. Every change
is a single operation that is atomic under the interpreter's lock.
"""

from __future__ import annotations

from collections.abc import Callable
from time import time_ns
from typing import Any, NamedTuple, TypeAlias

from ragspan.records import RagRecord, SpanAnchor

RunKey: TypeAlias = int | str
"""The key of a framework's run or span; unique in this process."""

_TOKEN_BYTES = 60
"""Of a short text; a token of content blocks is some of them."""


class Event(NamedTuple):
    """Something that happened in a request."""

    kind: str
    """The integration's own word: a start, an end, an error."""
    run: RunKey
    parent: RunKey | None
    """The run around it; of starts only."""
    time_ns: int
    payload: Any = None
    """What was given or came out, as a snapshot."""
    about: Any = None
    """What else the framework says of it."""


class TokenStream:
    """The tokens of one call of a model, appended as they come."""

    def __init__(self) -> None:
        self.first_ns = time_ns()
        self.tokens: list[Any] = []
        self.last_chunk: Any = None
        """The framework's own object that came with the last token."""


class RequestLog:
    """One request: what happened in it, in order, and what the integration read from the context when it began.

    Once it is over it is a `Capture`.

    Args:
        fold: makes the record, in the worker.
        grouped: it is what happened inside a `ragspan.capture` block, whose runs have no common root.
    """

    root: RunKey | None = None
    """The outermost run; None in a block."""
    ended_ns = 0
    over = False
    abandoned = False
    """It never ended, or not for too long."""
    anchor: SpanAnchor | None = None
    """The span that the answer belongs under."""
    earlier: tuple[RequestLog, ...] = ()
    """The interrupted requests that this one continues."""
    span_finder: Callable[[], SpanAnchor | None] | None = None
    """Finds the span that another instrumentation makes for the request; None once it is the anchor."""
    bytes = 0
    """Of the texts that it refers to; known when it is over."""

    def __init__(self, fold: Fold | None = None, *, grouped: bool = False) -> None:
        self.grouped = grouped
        self.started_ns = time_ns()
        self.about: dict[str, Any] = {}
        """What the integration notes of the request as a whole."""
        self.events: list[tuple[Any, ...]] = []
        """Plain tuples of what an `Event` has, which are made in a third of the time."""
        self.streams: dict[RunKey, TokenStream] = {}
        self.keys: list[RunKey] = []
        """All runs that were followed."""
        self.texts: dict[int, str] = {}
        """The texts in snapshots by identity, each once, for the size."""
        self.kept: dict[int, tuple[Any, Any]] = {}
        """The program's documents by identity, each with its snapshot. They stay alive until the request is over, so that
        an identity means the same document all the time."""
        self._fold = fold

    @property
    def history(self) -> list[Event]:
        """The events, in order."""
        return [Event._make(event) for event in list(self.events)]

    @property
    def last_event_ns(self) -> int:
        """When something last happened."""
        return self.events[-1][3] if self.events else self.started_ns

    @property
    def size_hint(self) -> int:
        return self.bytes + sum(log.bytes for log in self.earlier) if self.earlier else self.bytes

    def to_record(self) -> RagRecord | None:
        return None if self._fold is None else self._fold(self)

    def note(
        self, kind: str, run: RunKey, parent: RunKey | None = None, payload: Any = None, about: Any = None
    ) -> None:
        """Append an event that happens now."""
        self.events.append((kind, run, parent, time_ns(), payload, about))

    def count(self, text: str) -> str:
        """Count a text for the size of the request, each one once."""
        self.texts[id(text)] = text
        return text

    def look_for_span(self, find: Callable[[], SpanAnchor | None]) -> None:
        """Take the span that another instrumentation makes for this request as its anchor, as soon as there is one."""
        self.span_finder = find
        self.find_span()

    def find_span(self) -> None:
        """Look for that span again. The other instrumentation may hear of a start after us."""
        anchor = None if self.span_finder is None else self.span_finder()
        if anchor is not None:
            self.anchor, self.span_finder = anchor, None

    def end(self) -> None:
        """The request is over."""
        self.ended_ns = time_ns()
        self.over = True
        self.span_finder = None

    def release(self) -> None:
        """Release the program's documents and sum up the texts, which stay in the snapshots."""
        # A text's size is known without reading it.
        self.bytes = sum(map(str.__sizeof__, list(self.texts.values())))
        if self.streams:
            self.bytes += _TOKEN_BYTES * sum(len(stream.tokens) for stream in list(self.streams.values()))
        self.kept.clear()
        self.texts.clear()


Fold: TypeAlias = Callable[[RequestLog], RagRecord | None]
"""Makes the record of a finished log; None when nothing was answered. Pure, and called in the worker."""
