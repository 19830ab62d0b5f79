"""Parts of a worker for tests that need no broker: deliveries, and the emitters as a worker has them."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections import defaultdict

from nats.aio.msg import Msg
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from ragspan.outcomes import MetricFailure, Score, ScoredRecord
from ragspan.records import Generation, RagRecord, Retrieval, RetrievedContext, SpanAnchor
from ragspan.telemetry import OTelEmitter
from ragspan_nats.worker.delivery import EARLIER_DELIVERIES, Arrival, Delivery
from ragspan_nats.worker.emitter import CurrentDelivery, DeliveryEmitter, NotingSampler
from ragspan_nats.worker.options import WorkerOptions

PARENT = SpanAnchor(trace_id=0xA1, span_id=0xB2, is_remote=True)
OUTAGE = MetricFailure(error_type="APIConnectionError", message="no connection", outage=True)
_sequences = itertools.count(1)


def a_record(record_id="record-1", **given):
    """An answer with a search and a model call."""
    passages = (RetrievedContext(text="Beta settles card payments after midnight."),)
    about = {
        "question": "When are card payments settled?",
        "contexts": passages,
        "response": "Beta settles card payments after midnight.",
        "record_id": record_id,
        "started_ns": 1_000,
        "ended_ns": 9_000,
        "retrievals": (Retrieval(name="store", query="q", started_ns=2_000, ended_ns=3_000, contexts=passages),),
        "generations": (Generation(model="small", provider="local", started_ns=4_000, ended_ns=5_000),),
    }
    return RagRecord(**{**about, **given})


class RecordDelivery(Delivery):
    """A delivery that knows its record."""

    def __init__(self, arrival, record):
        super().__init__(arrival)
        self.record = record


def a_delivery(record=None, *, number=1, earlier=0, sequence=None, stored_at=1.0, spans=()):
    """A delivery of a record.

    Args:
        record: what the message holds.
        number: which delivery of the message this is.
        earlier: how often it had been delivered before it was a dead letter.
        sequence: of the message; another one each time by default.
        stored_at: when the stream took the message, in Unix seconds.
        spans: what is to be exported.
    """
    headers = {EARLIER_DELIVERIES: str(earlier)} if earlier else {}
    made = RecordDelivery(
        an_arrival(number=number, sequence=sequence, stored_at=stored_at, headers=headers), record or a_record()
    )
    made.spans += spans
    return made


def an_arrival(*, payload=b"", headers=None, number=1, sequence=None, stored_at=1.0):
    """A message as the broker delivers it."""
    sequence = next(_sequences) if sequence is None else sequence
    reply = f"$JS.ACK.ragspan.ragspan-workers.{number}.{sequence}.{sequence}.{int(stored_at * 1e9)}.0"
    return Arrival.of(Msg(None, subject="ragspan.records", reply=reply, data=payload, headers=headers))


def scored(record, outcomes=None, *, span=None):
    outcomes = {"faithfulness": Score(value=1.0)} if outcomes is None else outcomes
    return ScoredRecord(record=record, outcomes=outcomes, span=span)


class SpanMaker:
    """What makes the spans in a worker, without an engine in front of it and an export behind.

    Args:
        sampler: of the provider; all by default.
        options: of the worker.
        others: emitters beside that of the spans.
        providers: further ones for `OTelEmitter`, and its other arguments.
    """

    def __init__(self, *, sampler=None, options=None, others=(), **providers):
        current = CurrentDelivery()
        provider = TracerProvider(sampler=sampler, id_generator=current, shutdown_on_exit=False)
        provider.sampler = NotingSampler(provider.sampler, current)
        provider.add_span_processor(current)
        self._emitter = OTelEmitter(tracer_provider=provider, **providers)
        self.emitter = DeliveryEmitter(self._emitter, others, current, options or WorkerOptions())
        self._handles = {}

    @property
    def open_spans(self):
        """Answers whose spans have been started and not ended."""
        return len(self._emitter._answers.unfinished)

    def open(self, delivery):
        """Begin a delivery; the anchor of its answer's span."""
        with self.emitter.scoring(delivery.record, delivery):
            self._handles[id(delivery)] = self.emitter.start(delivery.record)
        return self._handles[id(delivery)].span

    def abandon(self, delivery):
        """Nobody waits for its scores any more."""
        self._handles[id(delivery)].abandon()

    def emit(self, delivery, outcomes=None, *, span=None):
        """End it; the spans that are to be exported."""
        self._handles[id(delivery)].finish(scored(delivery.record, outcomes, span=span))
        return delivery.spans

    def score(self, delivery, outcomes=None):
        """Both."""
        return self.emit(delivery, outcomes, span=self.open(delivery))


def ids_of(spans):
    """The trace and the span id of each, by the span's name."""
    return {span.name: (span.context.trace_id, span.context.span_id) for span in spans}


class Backend(SpanExporter):
    """An exporter of which a test decides whether it takes something.

    `takes` is a function from the names of the spans to whether they are taken, or what to raise; `tries` has the names of
    each export.
    """

    def __init__(self, takes=lambda names: True):
        self.takes = takes
        self.tries = []
        self.taken = []
        self.is_shut_down = threading.Event()
        self.tried = threading.Event()

    def export(self, spans):
        names = [span.name for span in spans]
        self.tries.append(names)
        self.tried.set()
        answer = self.takes(names)
        if isinstance(answer, BaseException):
            raise answer
        if answer:
            self.taken += names
        return SpanExportResult.SUCCESS if answer else SpanExportResult.FAILURE

    def shutdown(self):
        self.is_shut_down.set()


class Ends:
    """What a part of the worker said of deliveries."""

    def __init__(self):
        self._ends = defaultdict(list)
        self._lock = threading.Lock()

    def taker(self, how):
        """A function that notes a delivery as having ended so."""

        def take(delivery, *about):
            with self._lock:
                self._ends[how].append((delivery, *about))

        return take

    def deliveries(self, how):
        with self._lock:
            return [delivery for delivery, *_ in self._ends[how]]

    def about(self, how):
        """What was said besides the delivery."""
        with self._lock:
            return [about for _, *about in self._ends[how]]


class LoopThread:
    """An event loop in a thread of its own, as a worker has one."""

    def __init__(self):
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self._begun = []

    def begin(self, coroutine):
        """Run it beside the others."""
        self._begun.append(asyncio.run_coroutine_threadsafe(coroutine, self._loop))
        return self._begun[-1]

    def run(self, coroutine):
        """Run it; what it returns."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(60)

    def close(self):
        for begun in self._begun:
            begun.cancel()
        self.run(asyncio.sleep(0.01))  # what was cancelled ends
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(60)
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()
