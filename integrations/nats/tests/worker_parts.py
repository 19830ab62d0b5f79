"""Parts of a worker for tests that need no broker: deliveries, and the emitters as a worker has them."""

from __future__ import annotations

import itertools

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from ragspan.outcomes import MetricFailure, Score, ScoredRecord
from ragspan.records import Generation, RagRecord, Retrieval, RetrievedContext, SpanAnchor
from ragspan.telemetry import OTelEmitter
from ragspan_nats.consumer import Delivery
from ragspan_nats.scoring import DeterministicSpanIds

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


def a_delivery(*, number=1):
    """The delivery of this number of a message."""
    return Delivery(reply="$JS.ACK", sequence=next(_sequences), number=number, payload=b"", headers={})


def scored(record, outcomes=None, *, span=None):
    outcomes = {"faithfulness": Score(value=1.0)} if outcomes is None else outcomes
    return ScoredRecord(record=record, outcomes=outcomes, span=span)


class SpanMaker:
    """What makes the spans in a worker.

    Args:
        sampler: of the provider; all by default.
        given: arguments of `OTelEmitter`.
    """

    def __init__(self, *, sampler=None, **given):
        self._ids = DeterministicSpanIds()
        provider = TracerProvider(sampler=sampler, id_generator=self._ids, shutdown_on_exit=False)
        provider.add_span_processor(self._ids)
        self._emitter = OTelEmitter(tracer_provider=provider, **given)

    def open(self, record, **about):
        """Begin a delivery of the record."""
        delivery = a_delivery(**about)
        with self._ids.at(delivery, record):
            delivery.handle = self._emitter.start(record)
        return delivery

    def emit(self, delivery, record, outcomes=None):
        """End it; the spans that are to be exported."""
        with self._ids.at(delivery, record):
            delivery.handle.finish(scored(record, outcomes, span=delivery.handle.span))
        return delivery.spans

    def score(self, record, outcomes=None, **about):
        """Both."""
        return self.emit(self.open(record, **about), record, outcomes)


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
        self.taken, self.spans = [], []

    def export(self, spans):
        names = [span.name for span in spans]
        self.tries.append(names)
        answer = self.takes(names)
        if isinstance(answer, BaseException):
            raise answer
        if answer:
            self.taken += names
            self.spans += spans
        return SpanExportResult.SUCCESS if answer else SpanExportResult.FAILURE
