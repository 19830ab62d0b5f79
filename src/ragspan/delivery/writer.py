"""The emitter that all backends with scores of their own have in common.

Guarantees:
- `emit` makes the items and puts them into a bounded queue: it does no I/O, and waits for none.
- What could be delivered within the retry window is: a span that has not arrived yet, a backend that is away, slow or busy,
  or fails, is tried again with growing pauses. All else is counted by its reason.
- The outcomes of one record and metric arrive in the order in which they were emitted.
- `flush` and `shutdown` return when their time is up. The child of a fork starts with nothing to deliver, and connects anew.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

from ragspan.delivery._outbox import Outbox
from ragspan.delivery._report import Report
from ragspan.delivery._schedule import Schedule
from ragspan.delivery.destination import Deliverable, Destination
from ragspan.delivery.options import DeliveryOptions
from ragspan.delivery.receipt import Receipt
from ragspan.delivery.stats import Counts, DeliveryStats
from ragspan.forks import keep_inherited, watch_forks
from ragspan.outcomes import Score, ScoredRecord
from ragspan.records import SpanAnchor
from ragspan.telemetry.anchors import is_valid
from ragspan.telemetry.base import ScoreEmitter

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider

_Item = TypeVar("_Item", bound=Deliverable)


class ScoreWriter(ScoreEmitter, ABC, Generic[_Item]):
    """Writes the scores of answers to a backend, in the background.

    A derived class says what is written for an answer (`items_of`) and how (`connect`), and has a `__reduce__`, for an
    engine with `export="helper"` sends its emitters to another process.

    Args:
        delivery: how patiently, and how much may wait.
        meter_provider: where `ragspan.deliveries` goes; None means the global one, whenever it is set.
    """

    name: ClassVar[str]
    """The backend's, in metrics and in the log."""

    score_wait = 0.0
    """An emitter that other emitters need not wait for."""

    def __init__(self, delivery: DeliveryOptions | None = None, *, meter_provider: MeterProvider | None = None) -> None:
        self._delivery = delivery or DeliveryOptions()
        self._report = Report(self.name, meter_provider=meter_provider)
        self._outbox = self._new_outbox()
        watch_forks(self, ScoreWriter._start_afresh)

    @property
    def delivery(self) -> DeliveryOptions:
        """How patiently it delivers, and how much may wait; can be changed before anything is emitted."""
        return self._delivery

    @delivery.setter
    def delivery(self, delivery: DeliveryOptions) -> None:
        self._delivery = delivery
        self._outbox = self._new_outbox()

    @abstractmethod
    def items_of(self, scored: ScoredRecord, span: SpanAnchor) -> Sequence[_Item]:
        """What to write for these outcomes of an answer that has this span, a valid and sampled one.

        Called where answers are emitted, usually in the engine's worker, so it does no I/O; the items should not hold the record, for they may wait long.
        """

    @abstractmethod
    def connect(self) -> Destination[_Item]:
        """A connection to the backend. Called in the writer's own thread before the first write, and whenever that raised.

        What it raises is treated as if `Destination.write` had raised it.
        """

    def emit(self, scored: ScoredRecord) -> None:
        """Take an answer's outcomes; those of an answer without a sampled span are counted as `no_span`."""
        self.emit_with_receipt(scored)

    def emit_with_receipt(self, scored: ScoredRecord) -> Receipt:
        """The same, for whoever wants to know what becomes of these outcomes."""
        span = scored.span
        if span is None or not span.sampled or not is_valid(span):
            scores = sum(isinstance(outcome, Score) for outcome in scored.outcomes.values())
            return self._outbox.refuse("no_span", scores)
        return self._outbox.put(self.items_of(scored, span))

    def flush(self, timeout: float) -> bool:
        """Try everything at once, whatever it waits for.

        Returns:
            True if everything that was emitted before is delivered, or finally refused, within `timeout` seconds.
        """
        return self._outbox.flush(timeout)

    def shutdown(self, timeout: float) -> None:
        """Deliver what is left within `timeout` seconds, count the rest as dropped, and let go of the connection."""
        self._outbox.shutdown(timeout)

    def stats(self) -> DeliveryStats:
        """Where everything is that was emitted."""
        return self._outbox.stats()

    def _new_outbox(self) -> Outbox[_Item]:
        schedule: Schedule[_Item] = Schedule(self._delivery, counts=Counts())
        return Outbox(schedule, connect=self.connect, report=self._report, name=f"ragspan-{self.name}")

    def _start_afresh(self) -> None:
        """In the child of a fork there is nothing to deliver: what is left is the parent's."""
        keep_inherited(self._outbox)
        self._outbox = self._new_outbox()
