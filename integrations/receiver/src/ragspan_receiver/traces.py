"""The traces that wait for their end, within bounds; any thread may call any method.

A trace ends once: `quiet` seconds after its last span if it has a root, else `deadline` seconds after it. Only our own clock counts.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ragspan.arguments import SOME_SECONDS, WHOLE
from ragspan_receiver.spans import RawSpan

_SPAN_OVERHEAD = 300  # bytes of memory beside its content, about
_TRACE_OVERHEAD = 700


@dataclass(frozen=True, kw_only=True, slots=True)
class BufferLimits:
    """How long traces wait, and how much memory they take.

    Raises:
        ConfigurationError: a figure has a value that is not allowed.
    """

    quiet: float = 2.0
    """Seconds without a new span after which a trace with a root has ended."""
    deadline: float = 30.0
    """Seconds after which a trace without a root has ended."""
    max_bytes: int = 256 * 1024 * 1024
    """The spans of all traces may have this many bytes, those that have ended and are not read yet included."""
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
    ends: float
    """When it has ended if no other span comes."""
    spans: dict[bytes, RawSpan] = field(default_factory=dict)
    """By their ids: an exporter may send a span again."""
    size: int = _TRACE_OVERHEAD
    is_marked: bool = False
    has_root: bool = False


class OpenTraces:
    """The spans that came, by trace, until each trace has ended.

    Args:
        limits: of what waits.
        clock: seconds that only grow.
    """

    def __init__(self, limits: BufferLimits, clock: Callable[[], float] = time.monotonic) -> None:
        self._limits = limits
        self._clock = clock
        self._lock = threading.Lock()
        self._open: dict[bytes, Trace] = {}
        self._ended: dict[bytes, None] = {}
        """The ids of traces that have ended, the oldest first."""
        self._counts: Counter[str] = Counter()
        self.size = 0
        """Bytes of traces that are open, or have ended and were not released yet."""

    def __len__(self) -> int:
        """How many are open."""
        return len(self._open)

    @property
    def is_full(self) -> bool:
        return self.size >= self._limits.max_bytes or len(self._open) >= self._limits.max_traces

    @property
    def counts(self) -> Counter[str]:
        """What became of spans and traces so far."""
        with self._lock:
            return self._counts.copy()

    def count(self, name: str, number: int = 1) -> None:
        with self._lock:
            self._counts[name] += number

    def add(self, trace_id: bytes, spans: Sequence[RawSpan]) -> int:
        """Take spans of one trace; returns how many of them were over its bounds."""
        with self._lock:
            if trace_id in self._ended:
                self._counts["spans.late"] += len(spans)
                return 0
            now = self._clock()
            trace = self._open.get(trace_id)
            if trace is None:
                trace = self._open[trace_id] = Trace(trace_id, now)
                self.size += trace.size
            before = trace.size
            for span in spans:
                if span.id not in trace.spans:
                    trace.size += len(span.encoded) + _SPAN_OVERHEAD
                    trace.spans[span.id] = span
                    trace.is_marked |= span.is_marked
                    trace.has_root |= span.is_root
            self.size += trace.size - before
            if len(trace.spans) > self._limits.max_trace_spans or trace.size > self._limits.max_trace_bytes:
                self._end(trace)
                self.size -= trace.size
                self._counts["traces.too_large"] += 1
                return len(spans)
            self._counts["spans.accepted"] += len(spans)
            trace.ends = now + (self._limits.quiet if trace.has_root else self._limits.deadline)
            return 0

    def ended(self, *, all_of_them: bool = False) -> list[Trace]:
        """The traces that have ended by now and are to be read. The caller releases them.

        Args:
            all_of_them: end those that are open, too. Of one without a root nobody knows what it would still have said.
        """
        with self._lock:
            now = self._clock()
            ended = [trace for trace in self._open.values() if all_of_them or trace.ends <= now]
            found = []
            for trace in ended:
                self._end(trace)
                is_cut_off = trace.ends > now and not trace.has_root
                if trace.is_marked and not is_cut_off:
                    found.append(trace)
                else:
                    self._counts["traces.cut_off"] += trace.is_marked
                    self.size -= trace.size
            return found

    def release(self, trace: Trace) -> None:
        """Free the room of a trace whose spans are no longer kept."""
        with self._lock:
            self.size -= trace.size

    def _end(self, trace: Trace) -> None:
        """End a trace; under the lock."""
        del self._open[trace.id]
        self._counts["traces.ended"] += 1
        self._counts["traces.of_interest"] += trace.is_marked
        self._ended[trace.id] = None
        if len(self._ended) > self._limits.max_traces:
            del self._ended[next(iter(self._ended))]
