"""The export line: sends the spans of scored records, and says of each record when its scores have arrived.

The SDK's batch processor exports as well, but tells nobody what became of a batch; and a record may only be acknowledged
when its scores are out.

Guarantees:
- A delivery leaves here exactly once: exported, by `on_exported`, or by `on_failure`, because the backend did not take it for
  as long as the patience lasts. An exporter has to come back from `export` for that: those of OTLP have a time limit.
- A backend that takes nothing costs three tries, and then one after each pause, with pauses that grow.
- A delivery that is refused by itself while others are taken is tried again by itself, less and less often, and holds no
  other up.
- One thread, which nothing that an exporter raises ends.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from ragspan.telemetry.suppress import suppressed
from ragspan.throttled_log import ThrottledLog
from ragspan_nats.worker.delivery import Delivery

_LINGER = 0.2  # seconds that a scored record waits for others to be sent with
_BATCH = 512  # spans that are sent at once
_FLUSH_MILLIS = 30_000  # for what an exporter holds back
_FIRST_PAUSE = 1.0  # seconds until the next try, twice as many each time
_LONGEST_PAUSE = 30.0
_WITNESSES = 2  # deliveries in a row that are not taken by themselves, which say that the backend takes nothing
_RETRIES = 8  # of refused deliveries before those are sent that came in the meantime


@dataclass(slots=True, eq=False)
class _Refused:
    """A delivery that was not taken by itself."""

    delivery: Delivery
    tries: int = 0
    due: float = 0.0
    """Seconds of the monotonic clock at which it is tried again."""

    def put_off(self) -> None:
        self.due = time.monotonic() + min(_FIRST_PAUSE * 2.0 ** min(self.tries, 30), _LONGEST_PAUSE)
        self.tries += 1


class ExportLine:
    """Exports in a thread of its own.

    Args:
        exporters: all of which have to take a span.
        on_exported: called in the thread with a delivery whose spans have been taken.
        on_failure: called in the thread with one whose patience is over.
        patience: seconds, more than 0, for which an export is tried.
        log: told of trouble.
    """

    def __init__(
        self,
        exporters: Sequence[SpanExporter],
        *,
        on_exported: Callable[[Delivery], None],
        on_failure: Callable[[Delivery], None],
        patience: float,
        log: ThrottledLog,
    ) -> None:
        self._exporters = exporters
        self._on_exported = on_exported
        self._on_failure = on_failure
        self._patience = patience
        self._log = log
        self._arrivals: queue.SimpleQueue[Delivery | None] = queue.SimpleQueue()
        self._fresh: list[Delivery] = []
        self._refused: list[_Refused] = []
        self._is_away = False
        """The backend takes nothing at the moment."""
        self._misses = 0
        """Deliveries that were not taken by themselves, since anything was taken."""
        self._pause = 0.0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._main, name="ragspan-export", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def put(self, delivery: Delivery) -> None:
        """Take a scored delivery; returns at once."""
        self._arrivals.put(delivery)

    def stop(self, timeout: float) -> None:
        """Begin nothing any more. What is left has not ended; it is for the caller to give back."""
        self._stopping.set()
        self._arrivals.put(None)
        if self._thread.is_alive():
            self._thread.join(timeout)
        for exporter in self._exporters:
            self._shut_down(exporter)

    def _main(self) -> None:
        while not self._stopping.is_set():
            came = self._collect()
            if self._stopping.is_set():
                return
            for delivery in came:
                delivery.is_exported = not delivery.spans  # of an answer that is not sampled
            self._fresh += came
            with suppressed():
                self._send_what_is_due()
            self._let_go()

    def _collect(self) -> list[Delivery]:
        """What has come: at the end of a pause, or as soon as there is something and a little has joined it."""
        came: list[Delivery] = []
        deadline = self._next_try()
        while True:
            try:
                left = None if deadline is None else max(0.0, deadline - time.monotonic())
                arrived = self._arrivals.get(timeout=left)
            except queue.Empty:
                return came
            if arrived is None:
                return came
            came.append(arrived)
            if self._is_away:
                continue
            if len(came) == 1:
                deadline = time.monotonic() + _LINGER
            if sum(len(delivery.spans) for delivery in came) >= _BATCH:
                return came

    def _next_try(self) -> float | None:
        """When something has to be tried again; None if nothing has."""
        if self._is_away:
            return time.monotonic() + self._pause
        return min((one.due for one in self._refused), default=None)

    def _let_go(self) -> None:
        """Say what became of those that have been exported, and of those whose patience is over."""
        self._fresh = [delivery for delivery in self._fresh if not self._has_left(delivery)]
        self._refused = [one for one in self._refused if not self._has_left(one.delivery)]
        if not self._fresh and not self._refused:
            self._is_away = False  # there is nothing to find out with

    def _has_left(self, delivery: Delivery) -> bool:
        if delivery.is_exported:
            self._on_exported(delivery)
            return True
        now = time.monotonic()
        delivery.waits_since = delivery.waits_since or now
        if now - delivery.waits_since < self._patience:
            return False
        self._on_failure(delivery)
        return True

    def _send_what_is_due(self) -> None:
        """Export, and mark what was taken."""
        if self._is_away and not self._probe():
            self._pause = min(max(2 * self._pause, _FIRST_PAUSE), _LONGEST_PAUSE)
            return
        fresh = [delivery for delivery in self._fresh if not delivery.is_exported]
        for batch in _batches(fresh):
            self._send(batch, is_up=False)
        left = {id(one.delivery) for one in self._refused}
        self._fresh = [delivery for delivery in self._fresh if id(delivery) not in left]
        if fresh and not any(delivery.is_exported for delivery in fresh):
            self._find_away()
        if not self._is_away:
            self._retry()

    def _probe(self) -> bool:
        """Whether the backend takes a delivery again: each time another one, for it may be refused for its own sake."""
        fresh = next((delivery for delivery in self._fresh if not delivery.is_exported), None)
        if fresh is not None:
            self._fresh.remove(fresh)
            self._refused.append(_Refused(fresh))
        one = self._refused[-1] if fresh is not None else min(self._refused, key=lambda other: other.due)
        if self._take([one.delivery]):
            return True
        one.put_off()
        return False

    def _send(self, batch: Sequence[Delivery], *, is_up: bool) -> None:
        """Export a batch, and where it is not taken all but those for whose sake it is not.

        Args:
            batch: at least one.
            is_up: something was taken a moment ago.
        """
        if self._is_away or self._stopping.is_set() or self._take(batch):
            return
        if len(batch) == 1:
            self._refuse(batch[0])
            return
        if not is_up:  # is it the batch, or is it the backend?
            for delivery in batch[:_WITNESSES]:
                self._send([delivery], is_up=True)
            batch = batch[_WITNESSES:]
        middle = len(batch) // 2
        for half in (batch[:middle], batch[middle:]):
            if half:
                self._send(half, is_up=True)

    def _refuse(self, delivery: Delivery) -> None:
        self._refused.append(_Refused(delivery))
        self._refused[-1].put_off()
        self._misses += 1
        if self._misses >= _WITNESSES:
            self._find_away()

    def _find_away(self) -> None:
        if not self._is_away:
            self._is_away, self._pause = True, _FIRST_PAUSE

    def _retry(self) -> None:
        """Try those again by themselves that were refused, and whose time it is."""
        now = time.monotonic()
        due = sorted((one for one in self._refused if one.due <= now and not one.delivery.is_exported), key=_due)
        for one in due[:_RETRIES]:
            if self._stopping.is_set():
                return
            if not self._take([one.delivery]):
                one.put_off()

    def _take(self, deliveries: Sequence[Delivery]) -> bool:
        """Whether all exporters took these, which are marked then."""
        spans = [span for delivery in deliveries for span in delivery.spans]
        have_taken = [
            self._export_by(exporter, spans) for exporter in self._exporters
        ]  # all get them, whatever one says
        if not all(have_taken):
            return False
        for delivery in deliveries:
            delivery.is_exported = True
        self._is_away, self._misses = False, 0
        return True

    def _export_by(self, exporter: SpanExporter, spans: Sequence[object]) -> bool:
        try:
            if exporter.export(spans) is not SpanExportResult.SUCCESS:  # type: ignore[arg-type]
                return False
            # An exporter that takes spans in before it sends them says here whether it has sent them.
            return exporter.force_flush(_FLUSH_MILLIS) is not False
        except Exception as error:  # noqa: BLE001 - an exporter's code
            self._log.trouble("exporter", "%s failed with %s", type(exporter).__name__, type(error).__name__)
            return False

    def _shut_down(self, exporter: SpanExporter) -> None:
        try:
            exporter.shutdown()
        except Exception as error:  # noqa: BLE001 - an exporter's code
            self._log.trouble("exporter", "%s failed with %s", type(exporter).__name__, type(error).__name__)


def _due(one: _Refused) -> float:
    return one.due


def _batches(deliveries: Sequence[Delivery]) -> Iterator[list[Delivery]]:
    batch: list[Delivery] = []
    spans = 0
    for delivery in deliveries:
        if batch and spans + len(delivery.spans) > _BATCH:
            yield batch
            batch, spans = [], 0
        batch.append(delivery)
        spans += len(delivery.spans)
    if batch:
        yield batch
