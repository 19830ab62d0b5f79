"""Spans wait here until their trace has ended.

Guarantees:
- A trace ends once: `quiet` seconds after its last span where a root has come, else `deadline` seconds after it, and
  `LONGEST` seconds after its first one in any case. Only our own clock counts; what spans say of times is not believed.
- Traces, spans and bytes of a trace, and bytes of all are bounded. What is over a bound is counted; a trace that is too large
  is forgotten as a whole, since a part of it would be scored for what the rest says.
- Spans of a trace that has ended are counted and let go, for as long as it is remembered.

All of it runs in one event loop; nothing here waits.
"""

from __future__ import annotations

import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from ragspan.arguments import SOME_SECONDS, WHOLE
from ragspan_otlp.decoding import RawSpan

LONGEST = 600.0  # seconds
_SPAN_OVERHEAD = 300  # bytes of memory beside its content, about
_TRACE_OVERHEAD = 700


@dataclass(frozen=True, kw_only=True, slots=True)
class BufferLimits:
    """How long traces wait, and how much of them.

    Raises:
        ConfigurationError: a figure has a value that is not allowed.
    """

    quiet: float = 2.0
    """Seconds without a new span after which a trace with a root has ended."""
    deadline: float = 30.0
    """Likewise of a trace without one."""
    max_bytes: int = 256 * 1024 * 1024
    """Of all traces, those that have ended and are not read yet included."""
    max_traces: int = 100_000
    max_trace_spans: int = 10_000
    max_trace_bytes: int = 16 * 1024 * 1024

    def __post_init__(self) -> None:
        SOME_SECONDS.check_fields(self, "quiet", "deadline")
        WHOLE.check_fields(self, "max_bytes", "max_traces", "max_trace_spans", "max_trace_bytes")


@dataclass(slots=True)
class Trace:
    """The spans of a trace so far."""

    id: bytes
    began: float
    last: float
    spans: dict[bytes, RawSpan] = field(default_factory=dict)
    """By their ids: an exporter may send a span again."""
    size: int = _TRACE_OVERHEAD
    is_marked: bool = False
    has_root: bool = False


class TraceBuffer:
    """Gathers the spans of each trace.

    Args:
        limits: how long, and how much.
        clock: seconds that only grow.
    """

    def __init__(self, limits: BufferLimits, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._limits = limits
        self._clock = clock
        self._open: dict[bytes, Trace] = {}
        """In the order in which they began."""
        self._rooted: OrderedDict[bytes, Trace] = OrderedDict()
        """In the order of their last spans; so are the others."""
        self._rootless: OrderedDict[bytes, Trace] = OrderedDict()
        self._ended: OrderedDict[bytes, None] = OrderedDict()
        self.size = 0
        """Bytes of traces that are open, or have ended and were not released yet."""
        self.counts: Counter[str] = Counter()

    def __len__(self) -> int:
        """How many traces are open."""
        return len(self._open)

    @property
    def is_full(self) -> bool:
        """True where nothing can be added at the moment."""
        return self.size >= self._limits.max_bytes or len(self._open) >= self._limits.max_traces

    def add(self, trace_id: bytes, spans: Sequence[RawSpan]) -> int:
        """Take spans of one trace; how many of them were over its bounds."""
        if trace_id in self._ended:
            self.counts["spans.late"] += len(spans)
            return 0
        now = self._clock()
        trace = self._open.get(trace_id)
        if trace is None:
            trace = self._open[trace_id] = Trace(trace_id, now, now)
            self.size += trace.size
        before = trace.size
        trace.last = now
        # A resource is one object for all spans of a request that have it.
        trace.size += sum({id(span.resource): len(span.resource) for span in spans}.values())
        for span in spans:
            if span.id not in trace.spans:
                trace.size += len(span.encoded) + _SPAN_OVERHEAD
                trace.spans[span.id] = span
                trace.is_marked = trace.is_marked or span.is_marked
                trace.has_root = trace.has_root or span.is_root
        self.size += trace.size - before
        if len(trace.spans) > self._limits.max_trace_spans or trace.size > self._limits.max_trace_bytes:
            self._end(trace)
            self.release(trace)
            self.counts["traces.too_large"] += 1
            return len(spans)
        self.counts["spans.accepted"] += len(spans)
        waiting = self._rooted if trace.has_root else self._rootless
        waiting[trace_id] = trace
        waiting.move_to_end(trace_id)
        if trace.has_root:
            self._rootless.pop(trace_id, None)
        return 0

    def ended(self) -> Iterator[Trace]:
        """The traces that have ended by now. Each is to be released; one without anything to read is released already."""
        now = self._clock()
        yield from self._due(self._rooted, lambda trace: trace.last + self._limits.quiet <= now)
        yield from self._due(self._rootless, lambda trace: trace.last + self._limits.deadline <= now)
        yield from self._due(self._open, lambda trace: trace.began + LONGEST <= now)

    def end_all(self) -> Iterator[Trace]:
        """All traces, as if they had ended."""
        yield from self._due(self._open, lambda _: True)

    def release(self, trace: Trace) -> None:
        """Its spans are held no more."""
        self.size -= trace.size

    def _due(self, waiting: dict[bytes, Trace], is_due: Callable[[Trace], bool]) -> Iterator[Trace]:
        while waiting and is_due(trace := next(iter(waiting.values()))):
            self._end(trace)
            if trace.is_marked:
                yield trace
            else:
                self.release(trace)

    def _end(self, trace: Trace) -> None:
        del self._open[trace.id]
        self._rooted.pop(trace.id, None)
        self._rootless.pop(trace.id, None)
        self.counts["traces.ended"] += 1
        self.counts["traces.of_interest"] += trace.is_marked
        self._ended[trace.id] = None
        if len(self._ended) > self._limits.max_traces:
            self._ended.popitem(last=False)
