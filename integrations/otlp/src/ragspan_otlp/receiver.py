"""Takes spans from the servers, waits until their traces end, and submits the answers in them.

Guarantees:
- `take` waits for nothing. If the buffer is full it takes nothing, and says so.
- Traces are read in a thread of their own, a few at a time. Their memory is counted until they are read.
- What is over a bound or late is counted, and named in the log once a minute at most.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from functools import partial
from http import HTTPStatus
from typing import Any, NoReturn

from opentelemetry.metrics import CallbackOptions, MeterProvider, Observation
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from ragspan.records import RecordSink
from ragspan.telemetry import semconv
from ragspan.telemetry.providers import meter_of
from ragspan.throttled_log import ThrottledLog
from ragspan_otlp.buffer import BufferLimits, Trace, TraceBuffer
from ragspan_otlp.readers import records_of
from ragspan_otlp.spans import RefusedError, batch_of, decoded

_TICK = 0.1  # seconds between two looks for traces that have ended
_AT_ONCE = 64  # traces that are read before their memory is given back
_TROUBLE = {
    "requests.refused": "the receiver is full: %d requests were refused so far, and their senders asked to try again",
    "traces.too_large": "%d traces so far had more spans or bytes than they may, and are not scored",
    "spans.rejected": "%d spans so far had no valid id, or were too large",
    "spans.late": "%d spans so far came after their trace had ended; --quiet and --deadline say when it does",
}


class Receiver:
    """Submits the answers in traces.

    Args:
        sink: takes the records.
        retrieval_tools: names of tools whose results are documents.
        is_sampled: whether any metric scores the answers of the trace with this id; the others are dropped at once.
        limits: of what waits until its trace has ended.
    """

    def __init__(
        self,
        sink: RecordSink,
        *,
        retrieval_tools: Collection[str] = (),
        is_sampled: Callable[[bytes], bool] = lambda _: True,
        limits: BufferLimits | None = None,
    ) -> None:
        self._sink = sink
        self._retrieval_tools = retrieval_tools
        self._is_sampled = is_sampled
        self._buffer = TraceBuffer(limits or BufferLimits())
        self._log = ThrottledLog()
        self._stopped = asyncio.Event()
        self.counts = self._buffer.counts
        self._told: Counter[str] = Counter()

    @property
    def is_ready(self) -> bool:
        """There is room."""
        return not self._buffer.is_full

    def check_room(self) -> None:
        """Raise a `RefusedError` if there is no room for another request."""
        if self._buffer.is_full:
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
                rejected += self._buffer.add(trace_id, spans)
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

    async def run(self) -> None:
        """Read traces as they end, until `stop` is called."""
        while not self._stopped.is_set():
            await self._read(self._buffer.ended())
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
        await self._read(self._buffer.ended(all_of_them=True))

    def figures(self) -> dict[str, Any]:
        """What it has done so far, and what it holds."""
        return {"open_traces": len(self._buffer), "bytes": self._buffer.size, **dict(sorted(self.counts.items()))}

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
                self._buffer.release(trace)

    def _submit(self, traces: Sequence[Trace]) -> int:
        """Submit the records of some traces; returns how many."""
        number = 0
        for trace in traces:
            for record in records_of(list(decoded(trace.spans.values())), retrieval_tools=self._retrieval_tools):
                self._sink.submit(record)
                number += 1
        return number
