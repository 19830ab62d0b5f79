"""Takes spans from the servers, lets their traces end, and has what they hold scored.

Guarantees:
- `take` waits for nothing. Where the buffer is full it takes nothing, and says so.
- Traces are read in a thread of their own, a few at a time. What they hold in memory is counted until they are read.
- What is over a bound, late or unreadable is counted, and named in the log once a minute at most.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from http import HTTPStatus
from itertools import islice
from typing import Any, NoReturn, TypeAlias

from opentelemetry.metrics import CallbackOptions, MeterProvider, Observation

from ragspan.records import RagRecord, RecordSink, SpanAnchor
from ragspan.telemetry import semconv
from ragspan.telemetry.providers import meter_of
from ragspan.throttled_log import ThrottledLog
from ragspan_otlp.buffer import BufferLimits, Trace, TraceBuffer
from ragspan_otlp.decoding import Batch, RefusedError, decoded
from ragspan_otlp.traces import TracedRecord, TracedSpan

_TICK = 0.1  # seconds between two looks for traces that have ended
_AT_ONCE = 64  # traces that are read before their memory is given back
_TROUBLE = {
    "requests.refused": "the receiver is full: %d requests were refused so far, and their senders asked to try again",
    "traces.too_large": "%d traces so far had more spans or bytes than they may, and are not scored",
    "traces.unreadable": "%d traces so far could not be read",
    "spans.rejected": "%d spans so far had no valid id, or were too large",
    "spans.late": "%d spans so far came after their trace had ended; --quiet and --deadline say when it does",
}


Reader: TypeAlias = Callable[[Sequence[TracedSpan]], Sequence[TracedRecord]]


class Receiver:
    """Has the answers in traces scored.

    Args:
        sink: takes the records.
        read: finds the answers in the spans of a trace.
        is_sampled: whether anything scores the answers of the trace with this id; the others are let go of at once.
        limits: of what waits until its trace has ended.
        clock: seconds that only grow.
    """

    def __init__(
        self,
        sink: RecordSink,
        *,
        read: Reader,
        is_sampled: Callable[[bytes], bool] = lambda _: True,
        limits: BufferLimits | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._sink = sink
        self._read_spans = read
        self._is_sampled = is_sampled
        self._buffer = TraceBuffer(limits or BufferLimits(), clock=clock)
        self._log = ThrottledLog()
        self._stopped = asyncio.Event()
        self.counts = self._buffer.counts
        self._told: Counter[str] = Counter()

    def check_room(self) -> None:
        """Say so if there is no room for another request.

        Raises:
            RefusedError: there is none.
        """
        if self._buffer.is_full:
            self.refuse()

    def refuse(self) -> NoReturn:
        """Count a request that there is no room for.

        Raises:
            RefusedError: always.
        """
        self.counts["requests.refused"] += 1
        raise RefusedError(HTTPStatus.TOO_MANY_REQUESTS, "too many spans wait for the end of their traces")

    def take(self, batch: Batch) -> int:
        """Take the spans of a request; how many of them were rejected for good."""
        rejected = batch.rejected
        for trace_id, spans in batch.traces.items():
            if self._is_sampled(trace_id):
                rejected += self._buffer.add(trace_id, spans)
            else:
                self.counts["spans.not_sampled"] += len(spans)
        self.counts["requests.accepted"] += 1
        self.counts["spans.own"] += batch.own
        self.counts["spans.rejected"] += batch.rejected
        return rejected

    async def run(self) -> None:
        """Have traces read as they end; after `stop`, all that are there."""
        while not self._stopped.is_set():
            await self.look()
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._stopped.wait(), _TICK)
        await self._read(self._buffer.end_all())

    def stop(self) -> None:
        """Wait no longer for traces to end."""
        self._stopped.set()

    async def look(self) -> None:
        """Have the traces read that have ended by now."""
        await self._read(self._buffer.ended())
        for name, words in _TROUBLE.items():
            if self.counts[name] > self._told[name]:
                self._log.trouble(name, words, self.counts[name])
                self._told[name] = self.counts[name]

    @property
    def is_ready(self) -> bool:
        """There is room."""
        return not self._buffer.is_full

    def figures(self) -> dict[str, Any]:
        """What it has done so far, and what it holds."""
        return {"open_traces": len(self._buffer), "bytes": self._buffer.size, **dict(sorted(self.counts.items()))}

    def count_with(self, provider: MeterProvider) -> None:
        """Show the counts as metrics."""
        meter = meter_of(provider)
        for name, metric in semconv.METRICS_OF_RECEIVER.items():
            meter.create_observable_counter(
                metric,
                [self._observe(name)],
                unit=f"{{{name[:-1]}}}",
                description=f"The receiver's {name}, by what became of them.",
            )

    def _observe(self, name: str) -> Callable[[CallbackOptions], Iterable[Observation]]:
        def observe(_: CallbackOptions) -> Iterator[Observation]:
            for key, number in list(self.counts.items()):
                kind, result = key.partition(".")[::2]
                if kind == name:
                    yield Observation(number, {semconv.RESULT: result})

        return observe

    async def _read(self, traces: Iterator[Trace]) -> None:
        while few := list(islice(traces, _AT_ONCE)):
            found, unreadable = await asyncio.to_thread(self._submit, few)
            self.counts["records"] += found
            self.counts["traces.unreadable"] += unreadable
            for trace in few:
                self._buffer.release(trace)

    def _submit(self, traces: list[Trace]) -> tuple[int, int]:
        """Submit the records of some traces; how many records, and how many traces could not be read."""
        found = unreadable = 0
        for trace in traces:
            try:
                spans = list(decoded(trace.spans.values()))
                records = linked(self._read_spans(spans), spans)
            except Exception:  # noqa: BLE001 - whatever is in the trace, the others are read
                unreadable += 1
                continue
            for record in records:
                self._sink.submit(record)
            found += len(records)
        return found, unreadable


def linked(found: Iterable[TracedRecord], spans: Iterable[TracedSpan]) -> list[RagRecord]:
    """The records of a trace, each under the span of its answer, and with an id that is always the same for it."""
    by_id = {span.span_id: span for span in spans}
    return [
        replace(one.record, record_id=f"{span.trace_id}{span.span_id}", parent=_anchor(span))
        for one in found
        if (span := by_id.get(one.span_id)) is not None
    ]


def _anchor(span: TracedSpan) -> SpanAnchor:
    """Whatever its flags say: a span that is exported is sampled."""
    return SpanAnchor(
        trace_id=int(span.trace_id, 16), span_id=int(span.span_id, 16), trace_state=span.trace_state, is_remote=True
    )
