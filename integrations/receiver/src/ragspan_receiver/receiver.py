"""Takes spans from the servers, waits until their traces end, and submits the answers in them.

Guarantees:
- There is no room while traces are at their bounds, while those that have ended wait for more than some seconds to be handed on, from `stop` on,
  and for more than could be handed on within the time to stop. `take` refuses then, and the servers wait for room before it.
- An answer is submitted only when the sink has room for it, so that it pushes out no other.
- What was taken is submitted, or counted with the reason why not: `run`, and then `finish` for as long as it may take.
- What is over a bound, late or lost is counted. The log tells the true numbers, once a minute at most.
- Traces are read in a thread of their own.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator
from functools import partial
from http import HTTPStatus
from typing import Any, NoReturn, Protocol, runtime_checkable

from opentelemetry.metrics import CallbackOptions, MeterProvider, Observation
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from ragspan.counted import counted
from ragspan.engine import EngineStats
from ragspan.engine.processing import Deadline
from ragspan.records import RagRecord, RecordSink
from ragspan.telemetry import semconv
from ragspan.telemetry.providers import meter_of
from ragspan_receiver.bodies import RefusedError
from ragspan_receiver.pace import Pace
from ragspan_receiver.readers import records_of
from ragspan_receiver.spans import Batch, decoded
from ragspan_receiver.traces import BufferLimits, OpenTraces, Trace

_logger = logging.getLogger("ragspan")
_TICK = 0.1  # seconds between two looks for traces that have ended
_LOOK = 0.005  # seconds between two looks whether the sink has room
_PATIENCE = 5.0  # seconds that traces wait to be handed on before no others are taken
_SHARE = 0.35  # of the time to stop, which what was taken may need as far as one can tell
_LEAST = 5.0  # seconds to stop by which this is reckoned; who wants to stop sooner accepts losses
_SINKS_SHARE = 0.35  # of the time to stop, which the sink has for what it holds when reading ends, a fleet's at most
_LAST = 0.1  # of the time to stop, which a fleet's sink has in any case
_KINDS_NOT_READ = 50  # of spans that are shown on the page
_TELL = 60.0  # seconds between two lines in the log about the same
_TROUBLE = {
    "requests.refused": "the receiver is full: %s refused so far, and their senders asked to try again",
    "traces.too_large": "%s so far had more spans or bytes than a trace may have: not scored",
    "traces.cut_off": "%s so far began before this process or had not ended at its end: not scored",
    "traces.abandoned": "%s not read when the time to stop was over",
    "spans.rejected": "%s so far had no valid id, or too many bytes",
    "spans.late": "%s so far came after the end of the trace; --quiet and --deadline say when that is",
    "answers.dropped": "%s so far dropped after reading; /healthz shows the reasons",
}


@runtime_checkable
class WaitingSink(RecordSink, Protocol):
    """A sink with a queue, which says whether it is full. Of others it is assumed that they take everything."""

    def has_room(self, size: int) -> bool:
        """Whether a capture of this size pushes out no other."""

    def stats(self) -> EngineStats:
        """What became of all that was submitted."""


class Receiver:
    """Submits the answers in traces.

    Args:
        sink: takes the records.
        retrieval_tools: names of tools whose results are documents.
        is_sampled: whether any metric scores the answers of the trace with this id; the others are dropped at once.
        limits: of what waits until its trace has ended.
        end: seconds in which all that could be read has to be handed on when the process ends. What would take longer, as far as
            one can tell, is not taken.
        is_for_fleet: the sink hands on what it takes, and has to be done with it in that time, too. An engine counts what it does not score.
        clock: seconds that only grow.
    """

    def __init__(
        self,
        sink: RecordSink,
        *,
        retrieval_tools: Collection[str] = (),
        is_sampled: Callable[[bytes], bool] = lambda _: True,
        limits: BufferLimits | None = None,
        end: float = 10.0,
        is_for_fleet: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._sink = sink
        self._waiting_sink = sink if isinstance(sink, WaitingSink) else None
        self._retrieval_tools = retrieval_tools
        self._is_sampled = is_sampled
        self._end = end
        self._clock = clock
        self._fleet = self._waiting_sink if is_for_fleet else None
        self._pace = Pace(clock)
        self._read = 0
        """Traces so far."""
        self._stopped = threading.Event()
        self._taking = threading.Lock()
        """Of who takes a request, and of who ends all traces."""
        self._logged: dict[str, tuple[int, float]] = {}
        self._to_read: deque[Trace] = deque()
        """Traces that have ended, the oldest first."""
        self._to_submit: deque[RagRecord] = deque()
        """Answers of the first of them."""
        self._not_read: Counter[str] = Counter()
        """What spans about models no reader understood, and how many."""
        self.traces = OpenTraces(limits or BufferLimits(), clock)

    @property
    def counts(self) -> Counter[str]:
        """What it has done so far."""
        return self.traces.counts

    @property
    def is_stopped(self) -> bool:
        """It takes no spans any more."""
        return self._stopped.is_set()

    @property
    def is_ready(self) -> bool:
        """It takes spans."""
        return self.has_room(1)

    def has_room(self, traces: int) -> bool:
        """Whether it takes so many traces now. If there is nothing else to do, it takes any number."""
        return not self._stopped.is_set() and not self.traces.is_full and not self._is_behind(traces)

    def whole_in(self, batch: Batch) -> int:
        """How many traces of a request will be read, as far as one sees: those that have a root and are sampled."""
        found = 0
        for trace_id, spans in batch.traces.items():
            is_whole = any(span.is_root for span in spans) and any(span.is_marked for span in spans)
            found += is_whole and self._is_sampled(trace_id)
        return found

    def count(self, name: str) -> None:
        """Count something that happened to a request."""
        self.traces.count(name)

    def refuse(self) -> NoReturn:
        """Count a request that is not taken, and raise a `RefusedError`."""
        self.traces.count("requests.refused")
        if self._stopped.is_set():
            reason = "the receiver stops"
        elif self.traces.is_full:
            reason = "too many spans wait for the end of their traces"
        else:
            reason = "the answers that came before wait to be handed on"
        raise RefusedError(HTTPStatus.SERVICE_UNAVAILABLE, reason)

    def take(self, batch: Batch, whole: int | None = None) -> ExportTraceServiceResponse:
        """Take the spans of a request; in any thread.

        Args:
            batch: the request.
            whole: what `whole_in` says of it, where that is known.

        Raises:
            RefusedError: there is no room for them, or the receiver stops. Nothing of it is taken then.
        """
        rejected, whole = batch.rejected, self.whole_in(batch) if whole is None else whole
        with self._taking:
            if not self.has_room(whole):
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
            response.partial_success.error_message = (
                "these spans have no valid id, or they or their traces are too large"
            )
        return response

    async def run(self) -> None:
        """Read traces as they end, until `stop` is called."""
        await asyncio.to_thread(self._read_until_stopped)

    def stop(self) -> None:
        """Take no spans any more, and wait no longer for traces to end."""
        self._stopped.set()

    def finish(self, timeout: float) -> None:
        """Read all traces as if they had ended; what is left when the sink needs the rest of `timeout` is counted."""
        deadline = Deadline(timeout)
        with self._taking:  # a request that is being taken counts as a whole
            self._to_read += self.traces.ended(all_of_them=True)
        self._hand_on(lambda: deadline.remaining <= self._sinks_time(timeout))
        self.traces.count("traces.abandoned", len(self._to_read))
        while self._to_read:
            self.traces.release(self._to_read.popleft())
        self._to_submit.clear()
        self._tell(last=True)

    def figures(self) -> dict[str, Any]:
        """What it has done so far, and what it holds."""
        figures: dict[str, Any] = {
            "open_traces": len(self.traces),
            "bytes": self.traces.size,
            **dict(sorted(self.counts.items())),
            "not_read": self._not_read.copy(),
        }
        if self._waiting_sink is not None:
            stats = self._waiting_sink.stats()
            waiting = stats.queued + stats.in_flight
            figures["answers"] = {"waiting": waiting, "finished": stats.done, "dropped": dict(stats.dropped)}
        return figures

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
        for key, number in self.counts.items():
            kind, _, result = key.partition(".")
            if kind == name:
                yield Observation(number, {semconv.RESULT: result})

    def _is_behind(self, more: int) -> bool:
        """What is there waits for too long, or could not be handed on with so many traces more if the process were to end now."""
        try:
            if self._clock() - self._to_read[0].ends > _PATIENCE:
                return True
        except IndexError:
            pass  # nothing waits
        to_read = self.traces.to_read
        is_idle = not to_read and not self._sinks()
        return not is_idle and self._work(to_read + more) > max(self._end, _LEAST) * _SHARE

    def _work(self, traces: int) -> float:
        """Seconds for so many traces, and for what the fleet's sink holds."""
        return (traces + self._sinks()) * self._pace.seconds

    def _sinks_time(self, timeout: float) -> float:
        """Seconds of the time to stop that the sink needs: for what a fleet's holds, or to score what an engine has."""
        most = timeout * _SINKS_SHARE
        return most if self._fleet is None else min(most, self._work(0) + timeout * _LAST)

    def _sinks(self) -> int:
        """Answers that the fleet's sink holds."""
        if self._fleet is None:
            return 0
        stats = self._fleet.stats()
        return stats.queued + stats.in_flight

    # What follows runs in the thread that reads.

    def _read_until_stopped(self) -> None:
        while not self._stopped.is_set():
            self._note_pace()
            self._to_read += self.traces.ended()
            self._hand_on(self._stopped.is_set)
            self._tell()
            self._stopped.wait(_TICK)

    def _hand_on(self, is_over: Callable[[], bool]) -> None:
        """Submit the answers of the traces that have ended, until that is done or `is_over` says so."""
        while self._to_read and not is_over():
            self._note_pace()
            trace = self._to_read[0]
            if not self._to_submit:
                spans = list(decoded(trace.spans.values()))
                self._to_submit += records_of(
                    spans, retrieval_tools=self._retrieval_tools, not_read=self._count_not_read
                )
            while self._to_submit:
                if not self._waits_for_room(self._to_submit[0], is_over):
                    return
                self._sink.submit(self._to_submit.popleft())
                self.traces.count("records")
            self._to_read.popleft()
            self._read += 1
            self.traces.release(trace)

    def _note_pace(self) -> None:
        in_sink = self._sinks()
        self._pace.note(self._read - in_sink, is_busy=bool(self._to_read) or in_sink > 0)

    def _count_not_read(self, what: str) -> None:
        if what in self._not_read or len(self._not_read) < _KINDS_NOT_READ:
            self._not_read[what] += 1

    def _waits_for_room(self, record: RagRecord, is_over: Callable[[], bool]) -> bool:
        """Wait until the sink has room; False if it is over before."""
        if self._waiting_sink is not None:
            size = record.size_hint
            while not self._waiting_sink.has_room(size):
                if is_over():
                    return False
                self._tell()
                time.sleep(_LOOK)
        return True

    def _tell(self, *, last: bool = False) -> None:
        """Write what has gone wrong since the last line about it, once a minute at most, and at the end in any case."""
        counts, now = self.counts, self._clock()
        if self._waiting_sink is not None:
            counts["answers.dropped"] = sum(self._waiting_sink.stats().dropped.values())
        for name, words in _TROUBLE.items():
            number, at = self._logged.get(name, (0, -_TELL))
            if counts[name] > number and (last or now - at >= _TELL):
                self._logged[name] = (counts[name], now)
                _logger.warning(words, counted(counts[name], name.partition("s.")[0]))
