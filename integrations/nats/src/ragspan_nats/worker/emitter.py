"""The emitter of a worker's engine: gives the spans of a record the same ids whenever it is delivered, and keeps them for the export.

A record may be delivered twice, and is scored twice then. Its spans have the same ids both times, so that a backend which
knows spans by their ids shows the answer once; and the later ones say that they are of a later delivery.

Guarantees:
- An id follows from the record and from the span's name, and from nothing else: not from the process, and not from what
  other spans there are, which may be fewer when a worker with other metrics scores the record.
- Only spans that were ended by an emission are exported. What the emitter ends because it is shut down, without scores, is
  let go of: under its id the scores of the next delivery would not be seen.
- Of a record that is delivered again nothing is emitted: no span, no event, no measurement.

All of it but `flush` and `shutdown` runs in the engine's worker.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from typing import TYPE_CHECKING

from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.sdk.trace.sampling import Sampler, SamplingResult

from ragspan.engine._boundary import attempt
from ragspan.outcomes import ScoredRecord
from ragspan.records import RagRecord
from ragspan.telemetry import OTelEmitter, semconv
from ragspan.telemetry.base import AnswerHandle, EmitHandle, Emitter
from ragspan_nats.worker.delivery import Delivery, verdict_on
from ragspan_nats.worker.options import WorkerOptions

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Link, SpanKind, TraceState
    from opentelemetry.util.types import Attributes


class CurrentDelivery(IdGenerator, SpanProcessor):
    """The delivery whose spans are being made: gives them their ids, and collects those that end."""

    def __init__(self) -> None:
        self._delivery: Delivery | None = None
        self._record_id = self._phase = ""
        self._named: Counter[str] = Counter()
        self.name = ""
        """Of the span that is being started."""

    @contextmanager
    def at(self, delivery: Delivery | None, record: RagRecord, phase: str) -> Iterator[None]:
        """Spans that are started and ended in this block are this delivery's."""
        self._delivery, self._record_id, self._phase, self._named = delivery, record.record_id, phase, Counter()
        try:
            yield
        finally:
            self._delivery = None

    def generate_span_id(self) -> int:
        """Follows from the record, the span's name, and how many of that name there were before."""
        self._named[self.name] += 1
        return self._digest(f"{self._phase} {self._named[self.name]} {self.name}", size=8)

    def generate_trace_id(self) -> int:
        """Follows from the record alone."""
        return self._digest("trace", size=16)

    def _digest(self, what: str, *, size: int) -> int:
        """Never 0, which is no id."""
        if self._delivery is None:
            return int.from_bytes(secrets.token_bytes(size), "big") or 1
        # A name holds texts of others, and so does a record id; the length tells where one ends.
        key = f"{len(what)} {what} {self._record_id}"
        digest = blake2b(key.encode(errors="surrogatepass"), digest_size=size, person=b"ragspan").digest()
        return int.from_bytes(digest, "big") or 1

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:  # noqa: ARG002 - the SDK's signature
        if self._delivery is not None and self._delivery.count > 1:
            span.set_attribute(semconv.DELIVERY_COUNT, self._delivery.count)

    def on_end(self, span: ReadableSpan) -> None:
        if self._delivery is not None and span.context is not None and span.context.trace_flags.sampled:
            self._delivery.spans.append(span)


class NotingSampler(Sampler):
    """Leaves the decision to another sampler, and notes the span's name: generators of ids are not told it.

    Args:
        sampler: decides.
        current: told the name. The SDK asks the sampler before it makes the span's id.
    """

    def __init__(self, sampler: Sampler, current: CurrentDelivery) -> None:
        self._sampler = sampler
        self._current = current

    def should_sample(
        self,
        parent_context: Context | None,
        trace_id: int,
        name: str,
        kind: SpanKind | None = None,
        attributes: Attributes = None,
        links: Sequence[Link] | None = None,
        trace_state: TraceState | None = None,  # noqa: ARG002 - the SDK gives none, and not every sampler takes one
    ) -> SamplingResult:
        self._current.name = name
        return self._sampler.should_sample(parent_context, trace_id, name, kind, attributes, links)

    def get_description(self) -> str:
        return self._sampler.get_description()


class DeliveryEmitter:
    """Decides how a scored delivery ends, and has its scores emitted if it is acknowledged.

    Args:
        spans: makes the spans.
        others: get what is exported; native writers, which wait for the spans, are not among them.
        current: told of the delivery.
        options: for the verdict.
    """

    def __init__(
        self, spans: OTelEmitter, others: Sequence[Emitter], current: CurrentDelivery, options: WorkerOptions
    ) -> None:
        self._spans = spans
        self._others = others
        self._current = current
        self._options = options
        self._of_record: dict[int, Delivery] = {}

    @contextmanager
    def scoring(self, record: RagRecord, delivery: Delivery) -> Iterator[None]:
        """In this block the record, this very object, is the delivery's; two messages may hold records with the same id."""
        self._of_record[id(record)] = delivery
        try:
            yield
        finally:
            del self._of_record[id(record)]

    @property
    def score_wait(self) -> float:
        """A worker always waits for all scores."""
        return self._spans.score_wait

    def start(self, record: RagRecord) -> AnswerHandle:
        delivery = self._of_record.get(id(record))
        if delivery is None:  # nobody waits for its scores any more
            return EmitHandle(_nowhere)
        with self._current.at(delivery, record, "open"):
            spans = self._spans.start(record)
        started = (attempt(other.start, record)[0] for other in self._others)
        others = [handle for handle in started if handle is not None]
        return _DeliveryHandle(delivery, spans, others, self._current, self._options)

    def flush(self, timeout: float) -> bool:
        answers = [emitter.flush(timeout) for emitter in (self._spans, *self._others)]
        return all(answers)

    def shutdown(self, timeout: float) -> None:
        for emitter in (self._spans, *self._others):
            attempt(emitter.shutdown, timeout)


class _DeliveryHandle:
    """A delivery that is being scored."""

    def __init__(
        self,
        delivery: Delivery,
        spans: AnswerHandle,
        others: Sequence[AnswerHandle],
        current: CurrentDelivery,
        options: WorkerOptions,
    ) -> None:
        self._delivery = delivery
        self._spans = spans
        self._others = others
        self._current = current
        self._options = options
        self.span = spans.span or next((other.span for other in others if other.span is not None), None)
        self.retrieval_spans = spans.retrieval_spans

    def finish(self, scored: ScoredRecord) -> None:
        delivery = self._delivery
        verdict = verdict_on(scored, delivery.arrival.number, self._options)
        if verdict.ending != "ack":
            self.abandon()
            delivery.verdict = verdict
            return
        with self._current.at(delivery, scored.record, "emit"):
            self._spans.finish(scored)
        delivery.verdict = verdict  # after the spans: where they could not be made, there is none
        errors = [error for other in self._others if (error := attempt(other.finish, scored)[1])]
        if errors:
            raise errors[0]  # for the engine, which counts it

    def late(self, scored: ScoredRecord) -> None:
        """Nothing comes late: a worker waits for all scores."""

    def abandon(self) -> None:
        """End the spans without scores; nobody collects them."""
        for handle in (self._spans, *self._others):
            attempt(handle.abandon)


def _nowhere(_: ScoredRecord) -> None:
    """Nothing is emitted of what was given back."""
