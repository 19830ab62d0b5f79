"""The spans of a delivery: with ids that follow from the record, and kept together until they are exported.

A record may be delivered twice, and is scored twice then. Its spans have the same ids both times, so that a backend which
knows spans by their ids shows the answer once; and the later ones say that they are of a later delivery.

Guarantees:
- Only spans that were ended by an emission are exported. What the emitter ends because it is shut down, without scores, is
  let go of: under its id the scores of the next delivery would not be seen.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b
from typing import TYPE_CHECKING, Literal, TypeAlias

from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor
from opentelemetry.sdk.trace.id_generator import IdGenerator

from ragspan.telemetry import semconv
from ragspan_nats.worker.delivery import Delivery

if TYPE_CHECKING:
    from opentelemetry.context import Context

Phase: TypeAlias = Literal["open", "emit"]


class Current:
    """The delivery that the emitter is at work on. Only the engine's worker thread works on one."""

    def __init__(self) -> None:
        self.delivery: Delivery | None = None
        self._phase: Phase = "open"
        self._ids = 0

    @contextmanager
    def at(self, delivery: Delivery | None, phase: Phase) -> Iterator[None]:
        """Spans that are started in this block are this delivery's."""
        self.delivery, self._phase, self._ids = delivery, phase, 0
        try:
            yield
        finally:
            self.delivery = None

    def next_id(self, size: int) -> bytes:
        """Bytes that follow from the record and from how many were asked for; never all zero, which is no id."""
        if self.delivery is None:
            return secrets.token_bytes(size)
        self._ids += 1
        key = f"{self._phase} {self._ids} {self.delivery.record.record_id}"
        digest = blake2b(key.encode(errors="surrogatepass"), digest_size=size, person=b"ragspan").digest()
        return digest if any(digest) else b"\1" * size


class RecordIds(IdGenerator):
    """Ids of spans and traces, the same whenever and wherever the record is scored."""

    def __init__(self, current: Current) -> None:
        self._current = current

    def generate_span_id(self) -> int:
        return int.from_bytes(self._current.next_id(8), "big")

    def generate_trace_id(self) -> int:
        return int.from_bytes(self._current.next_id(16), "big")


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
