"""The spans of a delivery: with ids that follow from the record, and kept together until they are exported.

A record may be delivered twice, and is scored twice then. Its spans have the same ids both times, so that a backend which
knows spans by their ids shows the answer once; and the later ones say that they are of a later delivery.

Guarantees:
- An id follows from the record and from the span's name, and from nothing else: not from the process, and not from what
  other spans there are, which may be fewer when a worker with other metrics scores the record.
- Only spans that were ended by an emission are exported. What the emitter ends because it is shut down, without scores, is
  let go of: under its id the scores of the next delivery would not be seen.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from typing import TYPE_CHECKING, Literal, TypeAlias

from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.sdk.trace.sampling import Sampler, SamplingResult

from ragspan.telemetry import semconv
from ragspan_nats.worker.delivery import Delivery

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Link, SpanKind, TraceState
    from opentelemetry.util.types import Attributes

Phase: TypeAlias = Literal["open", "emit"]


class Current:
    """The delivery that the emitter is at work on. Only the engine's worker thread works on one."""

    def __init__(self) -> None:
        self.delivery: Delivery | None = None
        self.name = ""
        """Of the span that is being started."""
        self._phase: Phase = "open"
        self._named: Counter[str] = Counter()

    @contextmanager
    def at(self, delivery: Delivery | None, phase: Phase) -> Iterator[None]:
        """Spans that are started in this block are this delivery's."""
        self.delivery, self._phase, self._named = delivery, phase, Counter()
        try:
            yield
        finally:
            self.delivery = None

    def span_id(self) -> bytes:
        """Eight bytes that follow from the record, the span's name, and how many of that name there were before."""
        self._named[self.name] += 1
        return self._digest(f"{self._phase} {self._named[self.name]} {self.name}", size=8)

    def trace_id(self) -> bytes:
        """Sixteen bytes that follow from the record alone."""
        return self._digest("trace", size=16)

    def _digest(self, what: str, *, size: int) -> bytes:
        """Never all zero, which is no id."""
        if self.delivery is None:
            return secrets.token_bytes(size)
        # A name holds texts of others, and so does a record id; the length tells where one ends.
        key = f"{len(what)} {what} {self.delivery.record.record_id}"
        digest = blake2b(key.encode(errors="surrogatepass"), digest_size=size, person=b"ragspan").digest()
        return digest if any(digest) else b"\1" * size


class RecordIds(IdGenerator):
    """Ids of spans and traces, the same whenever and wherever the record is scored."""

    def __init__(self, current: Current) -> None:
        self._current = current

    def generate_span_id(self) -> int:
        return int.from_bytes(self._current.span_id(), "big")

    def generate_trace_id(self) -> int:
        return int.from_bytes(self._current.trace_id(), "big")


class NotingSampler(Sampler):
    """Leaves the decision to another sampler, and notes the span's name: generators of ids are not told it.

    Args:
        sampler: decides.
        current: told the name. The SDK asks the sampler before it makes the span's id.
    """

    def __init__(self, sampler: Sampler, current: Current) -> None:
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


class SpansOfDelivery(SpanProcessor):
    """Gives every span that ends to the delivery it belongs to; from there the export line takes them.

    Args:
        current: the delivery that is worked on.
    """

    def __init__(self, current: Current) -> None:
        self._current = current

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:  # noqa: ARG002 - the SDK's signature
        delivery = self._current.delivery
        if delivery is not None and delivery.count > 1:
            span.set_attribute(semconv.DELIVERY_COUNT, delivery.count)

    def on_end(self, span: ReadableSpan) -> None:
        delivery = self._current.delivery
        if delivery is not None and span.context is not None and span.context.trace_flags.sampled:
            delivery.spans.append(span)
