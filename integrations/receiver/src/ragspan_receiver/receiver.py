"""Takes spans from the servers, waits until their traces end, and submits the answers in them.

Guarantees:
- `take` waits for nothing. If there is no room it takes nothing, and says so.
- A trace ends once: `quiet` seconds after its last span if it has a root, else `deadline` seconds after it, and `LONGEST`
  seconds after its first one in any case. Only our own clock counts; the times in spans are not trusted.
- Traces, spans and bytes of a trace, and bytes of all are bounded. A trace that is too large is dropped as a whole, since a part
  of it would be scored for what the rest says.
- Spans of a trace that has ended are dropped, as long as the trace is remembered.
- What is over a bound or late is counted, and named in the log once a minute at most.
- Traces are read in a thread of their own, a few at a time. Their memory is counted until they are read. All else runs in one
  event loop.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from typing import Any, NoReturn

from opentelemetry.metrics import CallbackOptions, MeterProvider, Observation
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from ragspan.arguments import SOME_SECONDS, WHOLE
from ragspan.records import RecordSink
from ragspan.telemetry import semconv
from ragspan.telemetry.providers import meter_of
from ragspan.throttled_log import ThrottledLog
from ragspan_receiver.readers import records_of
from ragspan_receiver.spans import RawSpan, RefusedError, batch_of, decoded

LONGEST = 600.0  # seconds
_SPAN_OVERHEAD = 300  # bytes of memory beside its content, about
_TRACE_OVERHEAD = 700
_TICK = 0.1  # seconds between two looks for traces that have ended
_AT_ONCE = 64  # traces that are read before their memory is given back
_TROUBLE = {
    "requests.refused": "the receiver is full: %d requests were refused so far, and their senders asked to try again",
    "traces.too_large": "%d traces so far had more spans or bytes than they may, and are not scored",
    "spans.rejected": "%d spans so far had no valid id, or were too large",
    "spans.late": "%d spans so far came after their trace had ended; --quiet and --deadline say when it does",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class BufferLimits:
    """How long traces wait, and how much memory they take.

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
    latest_end: float
    """When it has ended in any case."""
    ends: float = 0.0
    """When it has ended if no other span comes."""
    spans: dict[bytes, RawSpan] = field(default_factory=dict)
    """By their ids: an exporter may send a span again."""
    size: int = _TRACE_OVERHEAD
    is_marked: bool = False
    has_root: bool = False


class Receiver:
    """Submits the answers in traces.

    Args:
        sink: takes the records.
        retrieval_tools: names of tools whose results are documents.
        is_sampled: whether any metric scores the answers of the trace with this id; the others are dropped at once.
        limits: of what waits until its trace has ended.
        clock: seconds that only grow.
    """

    def __init__(
        self,
        sink: RecordSink,
        *,
        retrieval_tools: Collection[str] = (),
        is_sampled: Callable[[bytes], bool] = lambda _: True,
        limits: BufferLimits | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._sink = sink
        self._retrieval_tools = retrieval_tools
        self._is_sampled = is_sampled
        self._limits = limits or BufferLimits()
        self._clock = clock
        self._open: dict[bytes, Trace] = {}
        self._ended: dict[bytes, None] = {}
        """The ids of traces that have ended, the oldest first."""
        self.size = 0
        """Bytes of traces that are open, or have ended and were not released yet."""
        self.counts: Counter[str] = Counter()
        self._log = ThrottledLog()
        self._stopped = asyncio.Event()
        self._told: Counter[str] = Counter()

    @property
    def is_ready(self) -> bool:
        """There is room."""
        return self.size < self._limits.max_bytes and len(self._open) < self._limits.max_traces

    def check_room(self) -> None:
        """Raise a `RefusedError` if there is no room for another request."""
        if not self.is_ready:
            self.refuse()

    def refuse(self) -> NoReturn:
        """Count a request that there is no room for, and raise a `RefusedError`."""
        self.counts["requests.refused"] += 1
        raise RefusedError(HTTPStatus.TOO_MANY_REQUESTS, "too many spans wait for the end of their traces")

    def take(self, body: bytes) -> ExportTraceServiceResponse:
        """Take the spans of a request in protobuf.

        Raises:
            RefusedError: it is none, or there are too many spans in it.
        """
        batch = batch_of(body)
        rejected = batch.rejected
        for trace_id, spans in batch.traces.items():
            if self._is_sampled(trace_id):
                rejected += self.add(trace_id, spans)
            else:
                self.counts["spans.not_sampled"] += len(spans)
        self.counts["requests.accepted"] += 1
        self.counts["spans.own"] += batch.own
        self.counts["spans.rejected"] += batch.rejected
        response = ExportTraceServiceResponse()
        if rejected:
            response.partial_success.rejected_spans = rejected
            told = "these spans have no valid id, or they or their traces are too large"
            response.partial_success.error_message = told
        return response

    def add(self, trace_id: bytes, spans: Sequence[RawSpan]) -> int:
        """Take spans of one trace; returns how many of them were over its bounds."""
        if trace_id in self._ended:
            self.counts["spans.late"] += len(spans)
            return 0
        now = self._clock()
        trace = self._open.get(trace_id)
        if trace is None:
            trace = self._open[trace_id] = Trace(trace_id, now + LONGEST)
            self.size += trace.size
        before = trace.size
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
        pause = self._limits.quiet if trace.has_root else self._limits.deadline
        trace.ends = min(now + pause, trace.latest_end)
        return 0

    def ended(self, *, all_of_them: bool = False) -> list[Trace]:
        """The traces that have ended by now, or all as if they had. The caller releases them; those without anything to read are not among them."""
        now = self._clock()
        ended = [trace for trace in self._open.values() if all_of_them or trace.ends <= now]
        for trace in ended:
            self._end(trace)
            if not trace.is_marked:
                self.release(trace)
        return [trace for trace in ended if trace.is_marked]

    def release(self, trace: Trace) -> None:
        """Its spans are no longer kept."""
        self.size -= trace.size

    def _end(self, trace: Trace) -> None:
        del self._open[trace.id]
        self.counts["traces.ended"] += 1
        self.counts["traces.of_interest"] += trace.is_marked
        self._ended[trace.id] = None
        if len(self._ended) > self._limits.max_traces:
            del self._ended[next(iter(self._ended))]

    async def run(self) -> None:
        """Read traces as they end, until `stop` is called."""
        while not self._stopped.is_set():
            await self._read(self.ended())
            for name, words in _TROUBLE.items():
                if self.counts[name] > self._told[name]:
                    self._log.trouble(name, words, self.counts[name])
                    self._told[name] = self.counts[name]
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._stopped.wait(), _TICK)

    def stop(self) -> None:
        """Wait no longer for traces to end."""
        self._stopped.set()

    async def finish(self) -> None:
        """Read all traces, as if they had ended."""
        await self._read(self.ended(all_of_them=True))

    def figures(self) -> dict[str, Any]:
        """What it has done so far, and what it holds."""
        return {"open_traces": len(self._open), "bytes": self.size, **dict(sorted(self.counts.items()))}

    def count_with(self, provider: MeterProvider) -> None:
        """Show the counts as metrics."""
        meter = meter_of(provider)
        for name, metric in semconv.METRICS_OF_RECEIVER.items():
            meter.create_observable_counter(
                metric,
                [partial(self._observed, name)],
                unit=f"{{{name[:-1]}}}",
                description=f"The receiver's {name}, by what became of them.",
            )

    def _observed(self, name: str, _options: CallbackOptions) -> Iterator[Observation]:
        for key, number in list(self.counts.items()):
            kind, _, result = key.partition(".")
            if kind == name:
                yield Observation(number, {semconv.RESULT: result})

    async def _read(self, traces: Sequence[Trace]) -> None:
        for first in range(0, len(traces), _AT_ONCE):
            few = traces[first : first + _AT_ONCE]
            self.counts["records"] += await asyncio.to_thread(self._submit, few)
            for trace in few:
                self.release(trace)

    def _submit(self, traces: Sequence[Trace]) -> int:
        """Submit the records of some traces; returns how many."""
        number = 0
        for trace in traces:
            for record in records_of(list(decoded(trace.spans.values())), retrieval_tools=self._retrieval_tools):
                self._sink.submit(record)
                number += 1
        return number
