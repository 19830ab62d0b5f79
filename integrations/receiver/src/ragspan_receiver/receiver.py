"""Takes spans from the servers, waits until their traces end, and submits the answers in them, in a thread of its own.

What was taken is submitted when the sink has room for it, so that it pushes out no other, or counted with the reason why not.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http import HTTPStatus
from typing import Any, NoReturn

from opentelemetry.metrics import CallbackOptions, MeterProvider, Observation
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from ragspan.arguments import counted
from ragspan.engine.threads import Deadline
from ragspan.records import RagRecord, RecordSink
from ragspan.telemetry import semconv
from ragspan.telemetry.providers import meter_of
from ragspan.throttled_log import ThrottledLog
from ragspan_receiver.readers import records_of
from ragspan_receiver.spans import Batch, RefusedError, batch_of, decoded
from ragspan_receiver.traces import BufferLimits, OpenTraces, Trace

MAX_BODY = 16 * 1024 * 1024
"""Bytes of a request's body, before and after it is unpacked."""
MAX_JSON = 8 * 1024 * 1024
"""Bytes of a body in JSON."""
_MAX_HELD = 256 * 1024 * 1024  # bytes of all requests under way
_AT_ONCE = 2  # bodies that are read; more would only take turns with the interpreter
_TICK = 0.1  # seconds between two looks for traces that have ended
_LOOK = 0.005  # seconds between two looks whether the sink has room
_PATIENCE = 5.0  # seconds that traces wait to be handed on before no others are taken
_SINKS_SHARE = 0.35  # of the time to stop, which the sink has for what it holds when reading ends
_TROUBLE = {
    "requests.refused": "the receiver is full: %s refused so far, and their senders asked to try again",
    "traces.too_large": "%s so far had more spans or bytes than a trace may have: not scored",
    "traces.cut_off": "%s so far began before this process or had not ended at its end: not scored",
    "traces.abandoned": "%s not read when the time to stop was over",
    "spans.rejected": "%s so far had no valid id",
    "spans.late": "%s so far came after the end of the trace; --quiet and --deadline say when that is",
    "answers.dropped": "%s so far dropped after reading; /healthz shows the reasons",
}


class Receiver:
    """Submits the answers in traces.

    Args:
        sink: takes the records; one with `has_room` and `stats` is waited for.
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
        self._waiting_sink: Any = sink if hasattr(sink, "has_room") else None
        self._retrieval_tools = retrieval_tools
        self._is_sampled = is_sampled
        self._clock = clock
        self._stopped = threading.Event()
        self._taking = threading.Lock()
        """Of who takes a request, and of who ends all traces."""
        self._log, self._told = ThrottledLog(), Counter[str]()
        self._to_read: deque[Trace] = deque()
        """Traces that have ended, the oldest first."""
        self._to_submit: deque[RagRecord] = deque()
        """Answers of the first of them."""
        self.traces = OpenTraces(limits or BufferLimits(), clock)
        self.held = 0
        """Bytes of requests under way; who holds some takes them off again."""
        self._threads = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="ragspan-intake")

    @property
    def is_ready(self) -> bool:
        """It takes spans: not while traces are at their bounds, or wait for more than some seconds to be handed on."""
        try:
            is_behind = self._clock() - self._to_read[0].ends > _PATIENCE
        except IndexError:
            is_behind = False  # nothing waits
        return not (self._stopped.is_set() or self.traces.is_full or is_behind)

    def refuse(self) -> NoReturn:
        """Count a request that is not taken, and raise a `RefusedError`."""
        self.traces.count("requests.refused")
        reason = "the receiver stops" if self._stopped.is_set() else "the receiver has no room for more"
        raise RefusedError(HTTPStatus.SERVICE_UNAVAILABLE, reason)

    def take(self, batch: Batch) -> ExportTraceServiceResponse:
        """Take the spans of a request; in any thread.

        Raises:
            RefusedError: there is no room for them, or the receiver stops. Nothing of it is taken then.
        """
        rejected = batch.rejected
        with self._taking:
            if not self.is_ready:
                self.refuse()
            for trace_id, spans in batch.traces.items():
                if self._is_sampled(trace_id):
                    rejected += self.traces.add(trace_id, spans)
                else:
                    self.traces.count("spans.not_sampled", len(spans))
        self.traces.count("requests.accepted")
        self.traces.count("spans.own", batch.own)
        self.traces.count("spans.rejected", batch.rejected)
        response = ExportTraceServiceResponse()
        if rejected:
            response.partial_success.rejected_spans = rejected
            response.partial_success.error_message = "these spans have no valid id, or their traces are too large"
        return response

    # Called by the servers, in one event loop

    def hold(self, size: int) -> None:
        """Count bytes of a request that is under way; raises a `RefusedError` if those of all are too many."""
        self.held += size
        if self.held > _MAX_HELD:
            self.refuse()

    async def take_body(
        self, body: bytes | bytearray, *, is_json: bool = False, is_packed: bool = False
    ) -> ExportTraceServiceResponse:
        """Take a request, in protobuf or JSON, plain or packed by gzip or zlib; raises a `RefusedError` if it is not taken."""
        read = partial(batch_of, most=MAX_JSON if is_json else MAX_BODY, is_json=is_json, is_packed=is_packed)
        loop = asyncio.get_running_loop()
        batch = await loop.run_in_executor(self._threads, read, body)
        return await loop.run_in_executor(self._threads, self.take, batch)

    def stop(self) -> None:
        """Take no spans any more, and wait no longer for traces to end."""
        self._stopped.set()

    def finish(self, timeout: float) -> None:
        """Read all traces as if they had ended; what is left when the sink needs the rest of `timeout` is counted."""
        deadline = Deadline(timeout)
        with self._taking:  # a request that is being taken counts as a whole
            self._to_read += self.traces.ended(all_of_them=True)
        self._hand_on(lambda: deadline.remaining <= timeout * _SINKS_SHARE)
        self.traces.count("traces.abandoned", len(self._to_read))
        while self._to_read:
            self.traces.release(self._to_read.popleft())
        self._to_submit.clear()
        self._tell()

    def figures(self) -> dict[str, Any]:
        """What it has done so far, and what it holds."""
        figures: dict[str, Any] = {
            "open_traces": len(self.traces),
            "bytes": self.traces.size,
            **dict(sorted(self.traces.counts.items())),
        }
        if self._waiting_sink is not None:
            stats = self._waiting_sink.stats()
            waiting = stats.queued + stats.in_flight
            figures["answers"] = {"waiting": waiting, "finished": stats.done, "dropped": dict(stats.dropped)}
        return figures

    def count_with(self, provider: MeterProvider) -> None:
        """Show the counts as metrics."""

        def observed(name: str, _options: CallbackOptions) -> Iterator[Observation]:
            for key, number in self.traces.counts.items():
                kind, _, result = key.partition(".")
                if kind == name:
                    yield Observation(number, {semconv.RESULT: result})

        for name, metric in semconv.METRICS_OF_RECEIVER.items():
            meter_of(provider).create_observable_counter(
                metric,
                [partial(observed, name)],
                unit=f"{{{name[:-1]}}}",
                description=f"The receiver's {name}, by what became of them.",
            )

    def read_until_stopped(self) -> None:
        """Read traces as they end, until `stop` is called."""
        while not self._stopped.is_set():
            self._to_read += self.traces.ended()
            self._hand_on(self._stopped.is_set)
            self._tell()
            self._stopped.wait(_TICK)

    def _hand_on(self, is_over: Callable[[], bool]) -> None:
        """Submit the answers of the traces that have ended, until that is done or `is_over` says so."""
        while self._to_read and not is_over():
            trace = self._to_read[0]
            if not self._to_submit:
                spans = list(decoded(trace.spans.values()))
                self._to_submit += records_of(spans, retrieval_tools=self._retrieval_tools)
            while self._to_submit:
                size = self._to_submit[0].size_hint
                while self._waiting_sink is not None and not self._waiting_sink.has_room(size):
                    if is_over():
                        return
                    self._tell()
                    time.sleep(_LOOK)
                self._sink.submit(self._to_submit.popleft())
                self.traces.count("records")
            self._to_read.popleft()
            self.traces.release(trace)

    def _tell(self) -> None:
        """Write what has gone wrong since the last line about it, once a minute at most."""
        counts = self.traces.counts
        if self._waiting_sink is not None:
            counts["answers.dropped"] = sum(self._waiting_sink.stats().dropped.values())
        for name, words in _TROUBLE.items():
            if counts[name] > self._told[name]:
                self._told[name] = counts[name]
                self._log.report(name, words, counted(counts[name], name.partition("s.")[0]))
