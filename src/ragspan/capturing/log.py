"""The log of a request, what an integration notes of it while it runs; and the requests of one sink that are open.

A log is written on the request path, by all threads of the request, which only append to it, and read in the worker once the
request is over. An integration's *fold*, a pure function, makes the record of it, so the request path matches and decides
nothing. Every change is a single operation that is atomic under the interpreter's lock.

Guarantees:

- Every method returns in microseconds, takes no lock, does no I/O, makes no span and attaches no context. A finaliser that
  ends a dropped stream may run at any point, in any thread.
- A request is forgotten when it is over, even if its inner runs have not ended: cancelled runs get no end event. A request
  that never ends is submitted as abandoned after a while, or when too many are open.
- One request gives one capture.
"""

from __future__ import annotations

import enum
import time
from collections.abc import Callable, Iterable, Mapping
from time import time_ns
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

from opentelemetry.context import get_current

from ragspan.capturing.answer import enclosing_answer
from ragspan.capturing.inside import INSIDE, Around, begin_inside, inner_logs, request_around
from ragspan.records import RagRecord, RecordSink, SpanAnchor
from ragspan.sizes import EVENT_PARTS, PART_BYTES
from ragspan.telemetry.otel_context import current_anchor, is_suppressed
from ragspan.throttled_log import ThrottledLog

RunKey: TypeAlias = int | str
"""The key of a framework's run or span; unique in this process."""

_MAX_RUNS = 50_000  # of one request
_SIZE_OF_TEXT = str.__sizeof__  # is known without reading the text


class EventKind(enum.Enum):
    """What may happen in a request. Who reads a log ignores kinds that it does not know."""

    START = enum.auto()
    """A step begins; `about` says what it is."""
    END = enum.auto()
    ERROR = enum.auto()
    """A step ends with an error, which is the payload."""
    CONTEXTS = enum.auto()
    """The program names contexts with `record_contexts`."""
    DOCUMENTS = enum.auto()
    """The program shows documents that it found; `about` is the name that it gives them."""
    INTERRUPT = enum.auto()
    """A graph stops to wait for a person."""
    AGAIN = enum.auto()
    """A start that was noted is told once more: the handler is there twice."""
    READ = enum.auto()
    """A model's stream has been read to its end."""
    TEXTS = enum.auto()
    """A synthesizer wrote its nodes for the model."""
    NODES = enum.auto()
    """The nodes as they are at the end of the request."""
    WORK = enum.auto()
    """A step of a workflow begins."""
    WORK_OVER = enum.auto()


class Event(NamedTuple):
    """Something that happened in a request."""

    kind: EventKind
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
        """The framework's own object that came with the last token; what is kept of it once the request is over."""


class RequestLog:
    """One request: what happened in it, in order, and what the integration read from the context when it began.

    Once it is over it is a `Capture`.

    Args:
        fold: makes the record, in the worker.
        grow: makes the tree of a log that is inside another request.
        grouped: it is what happened inside a `ragspan.capture` block, or another framework's request: its runs have no common root.
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
    """Of all that it holds; known when it is over."""

    def __init__(self, fold: Fold | None = None, grow: Grow | None = None, *, grouped: bool = False) -> None:
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
        self.parts = 0
        """What the containers in its snapshots hold."""
        self._fold = fold
        self._grow = grow

    @property
    def history(self) -> list[Event]:
        """The events, in order."""
        return [Event._make(event) for event in list(self.events)]

    @property
    def progress(self) -> int:
        """A number that grows with each event and token."""
        inside = sum(inner.log.progress for inner in inner_logs(self))
        return len(self.events) + sum(len(stream.tokens) for stream in list(self.streams.values())) + inside

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
        """Release the program's documents and sum up what stays in the snapshots."""
        parts = self.parts + EVENT_PARTS * len(self.events) + len(self.keys)
        if self.streams:
            parts += sum(len(stream.tokens) for stream in list(self.streams.values()))
        self.bytes = sum(map(_SIZE_OF_TEXT, list(self.texts.values()))) + PART_BYTES * parts
        if INSIDE in self.about:
            self.bytes += sum(inner.log.bytes for inner in inner_logs(self))
        self.kept.clear()
        self.texts.clear()


Fold: TypeAlias = Callable[[RequestLog], RagRecord | None]
"""Makes the record of a finished log; None when nothing was answered. Pure, and called in the worker."""

Grow: TypeAlias = Callable[[RequestLog, Mapping[RunKey, Any]], Any]
"""Makes the tree of a log inside another request."""

Place = TypeVar("Place")
"""What an integration wants to know of a live run: the log, or the log and a run around it."""


class EndedRuns:
    """Remembers the runs of requests that ended lately: what they still do in the background is not a new request.

    It knows the last `_RUNS` runs, but for those that another thread adds while the sets change, and of earlier ones about as
    many again at most.
    """

    _RUNS = 1 << 14

    def __init__(self) -> None:
        self._young: set[RunKey] = set()
        self._old: set[RunKey] = set()

    def add_all(self, keys: Iterable[RunKey]) -> None:
        young = self._young
        young.update(keys)
        if len(young) > self._RUNS:
            self._old, self._young = young, set()

    def inherit(self, key: RunKey, parent: RunKey) -> bool:
        """Whether the run around this one is known here; then this one is, too."""
        if parent not in self:
            return False
        self.add_all((key,))
        return True

    def __contains__(self, key: RunKey) -> bool:
        return key in self._young or key in self._old


_ended = EndedRuns()  # ids are unique in a process, so one serves all


class OpenRequests(Generic[Place]):
    """Requests from their first event to their last.

    Args:
        sink: gets a capture of each request.
        fold: makes the record of a request's log.
        grow: makes the tree of what happened inside another framework's request.
        on_end: is called with a log that has just ended, while its documents are still alive.
        max_open: requests that may be open at the same time; the oldest is given up beyond.
        max_seconds: after which a request in which nothing happens is given up.
        sweep_seconds: at least between two looks for such requests.
    """

    def __init__(
        self,
        sink: RecordSink,
        fold: Fold,
        grow: Grow | None = None,
        *,
        on_end: Callable[[RequestLog], None] | None = None,
        max_open: int = 10_000,
        max_seconds: float = 3600.0,
        sweep_seconds: float = 60.0,
    ) -> None:
        self.sink = sink
        self.live: dict[RunKey, Place] = {}
        """The runs that have not ended, by their keys."""
        self.ended = _ended
        self._fold = fold
        self._grow = grow
        self._log = ThrottledLog()
        self._on_end = on_end
        self._open: dict[int, RequestLog] = {}  # by identity, in order of their start
        self._seen: dict[int, tuple[int, float]] = {}  # how far each had come, and when that was noted
        self._max_open = max_open
        self._max_seconds = max_seconds
        self._sweep_seconds = sweep_seconds
        self._next_sweep = time.monotonic() + sweep_seconds

    # Starts

    def around(self) -> Around | None:
        """The run of another framework that the caller is in; none where a `ragspan.capture` block inside of it is nearer."""
        found = request_around(self.sink)
        return found if found is not None and (found.log.grouped or enclosing_answer() is None) else None

    def begin(self, run: RunKey) -> RequestLog | None:
        """The log of a run that nothing followed is around: a new one, or one of a `ragspan.capture` block or another request.

        None where instrumentation is suppressed, as it is for what a judge asks.
        """
        context = get_current()
        if context and is_suppressed(context):
            return None
        around = self.around()
        if around is not None:
            return begin_inside(around, run, self, lambda: self._new_log(grouped=True), self._end)
        answer = enclosing_answer()
        if answer is not None:
            return answer.part(self, lambda: self._new_log(grouped=True), self._end)
        log = self._new_log()
        if context:
            log.anchor = current_anchor(context)
        return log

    def follow(self, log: RequestLog, key: RunKey, place: Place) -> None:
        """Note that a run is live."""
        keys = log.keys
        keys.append(key)
        self.live[key] = place
        if log.over:  # it ended in another thread meanwhile
            self.live.pop(key, None)
        elif len(keys) > _MAX_RUNS:
            self.give_up(log)

    def _new_log(self, *, grouped: bool = False) -> RequestLog:
        """The log of a request that begins; others that should have ended are given up."""
        while len(self._open) >= self._max_open:
            self.give_up(next(iter(self._open.values())))
        now = time.monotonic()  # the wall clock may be set while a request runs
        if now >= self._next_sweep:
            self._next_sweep = now + self._sweep_seconds
            self._sweep(now)
        log = RequestLog(self._fold, self._grow, grouped=grouped)
        self._open[id(log)] = log
        self._seen[id(log)] = (0, now)
        return log

    def _sweep(self, now: float) -> None:
        """Give up the requests in which nothing has happened for too long."""
        for key, log in list(self._open.items()):
            progress, since = self._seen.get(key, (-1, now))
            if log.progress != progress:
                self._seen[key] = (log.progress, now)
            elif now - since > self._max_seconds:
                self.give_up(log)

    # Ends

    def finish(self, log: RequestLog) -> None:
        """Submit a request that is over, unless it was submitted, or its block does so. Never raises, whatever a sink does."""
        try:
            if not log.grouped and self._end(log):
                self.sink.submit(log)
        except Exception as problem:  # noqa: BLE001
            self.report(problem)

    def give_up(self, log: RequestLog) -> None:
        """End a request of which nothing more is expected."""
        log.abandoned = True
        if log.grouped:
            self._end(log)  # the block submits it
        else:
            self.finish(log)

    def discard(self) -> None:
        """Forget everything that is open, and submit nothing."""
        for log in list(self._open.values()):
            self._end(log)
        self.live.clear()

    def report(self, error: BaseException) -> None:
        """Something went wrong in a callback: it is logged, by its type, and the sink counts it where it can."""
        kind = type(error).__name__
        self._log.trouble(kind, "a callback of ragspan failed with %s", kind)
        count_error = getattr(self.sink, "count_error", None)
        if count_error is not None:
            count_error("callback")

    def _end(self, log: RequestLog) -> bool:
        """End a request; False if it has ended."""
        if self._open.pop(id(log), None) is None:
            return False
        self._seen.pop(id(log), None)
        log.end()
        live = self.live
        for key in log.keys:
            live.pop(key, None)
        self.ended.add_all(log.keys)
        if INSIDE in log.about:
            for inner in inner_logs(log):
                inner.end(inner.log)
        if self._on_end is not None:
            self._on_end(log)
        log.release()
        return True
