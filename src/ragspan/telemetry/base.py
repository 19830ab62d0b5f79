"""What the engine asks of anything that sends scored records somewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ragspan.outcomes import ScoredRecord
from ragspan.records import RagRecord, SpanAnchor

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export import SpanExporter

    from ragspan.config import CaptureContent


class Emitter(Protocol):
    """Sends scored records somewhere: to OpenTelemetry, to a backend's own scores, to a list in a test.

    `open` and `emit` run in the engine's worker thread, one at a time, in the order of the engine's emitters.
    `flush` and `shutdown` may come from any thread. An exception is counted and spreads nowhere.
    """

    @property
    def score_wait(self) -> float:
        """The longest, in seconds, that `emit` may be held back for scores; 0 means no need to wait."""
        ...

    def open(self, record: RagRecord) -> SpanAnchor | None:
        """The answer's span, if this emitter starts or finds it. Comes before any judge is paid."""
        ...

    def emit(self, scored: ScoredRecord) -> None:
        """Take a record's outcomes; never blocks.

        Comes once with `late=False`, when all metrics have ended or the wait is over, and once more with `late=True`
        and only those outcomes that came afterwards, if there are any.
        """
        ...

    def flush(self, timeout: float) -> bool:
        """Send what was emitted so far within `timeout` seconds; False if something may be left."""
        ...

    def shutdown(self, timeout: float) -> None:
        """Let go of everything within `timeout` seconds; nothing is emitted afterwards."""
        ...


class BackendEmitter(Emitter, Protocol):
    """An emitter of scores to a backend that takes spans as well; `ragspan.configure` makes it from an address alone."""

    @classmethod
    def at(cls, address: str, *, capture_content: CaptureContent) -> BackendEmitter:
        """The emitter for the backend at this address, with the same say about users' texts as `OTelEmitter`."""
        ...

    def span_exporter(self) -> SpanExporter:
        """An exporter that brings spans to the same backend."""
        ...


class KnowsRetrievalSpans(Protocol):
    """What an emitter may have besides: it starts or finds the spans of an answer's searches as well.

    Others can then say on a search's span what is to be said of the documents that it brought.
    """

    def retrieval_spans(self, record: RagRecord) -> tuple[SpanAnchor | None, ...]:
        """The span of each of `record.retrievals`, in order; None where it is not known. Comes after `open`."""
        ...
