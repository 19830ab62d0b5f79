"""The export line: sends the spans of scored records, and says of each record when its scores have arrived.

The SDK's batch processor exports as well, but tells nobody what became of a batch; and a record may only be acknowledged
when its scores are out.

Guarantees:
- A delivery leaves here exactly once: exported, by `on_exported`, or by `on_failure`, because the backend did not take it for
  as long as the patience lasts.
- What an exporter refuses is tried again with growing pauses, together with what came in the meantime. A span that it refuses
  for good is tried by itself, and holds no other up.
- One thread, which nothing that an exporter raises ends.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence

from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from ragspan.telemetry.suppress import suppressed
from ragspan.throttled_log import ThrottledLog
from ragspan_nats.worker.delivery import Delivery

_LINGER = 0.2  # seconds that a scored record waits for others to be sent with
_BATCH = 512  # spans that are sent at once
_FLUSH_MILLIS = 30_000  # for what an exporter holds back
_FIRST_PAUSE = 1.0  # seconds until the next try, twice as many each time
_LONGEST_PAUSE = 30.0


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
        waiting: list[Delivery] = []
        pause = 0.0
        while not self._stopping.is_set():
            came = self._collect(pause if waiting else None)
            waiting += came
            if not waiting or self._stopping.is_set():
                continue
            with suppressed():
                self._send(waiting)
            waiting = [delivery for delivery in waiting if not self._has_left(delivery)]
            pause = min(max(2 * pause, _FIRST_PAUSE), _LONGEST_PAUSE) if waiting else 0.0

    def _collect(self, pause: float | None) -> list[Delivery]:
        """What has come: after the pause, or with None as soon as there is something and a little has joined it."""
        came: list[Delivery] = []
        deadline = None if pause is None else time.monotonic() + pause
        while True:
            try:
                left = None if deadline is None else max(0.0, deadline - time.monotonic())
                arrived = self._arrivals.get(timeout=left)
            except queue.Empty:
                return came
            if arrived is None:
                return came
            came.append(arrived)
            if pause is None:
                deadline = deadline or time.monotonic() + _LINGER
                if sum(len(delivery.spans) for delivery in came) >= _BATCH:
                    return came

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

    def _send(self, deliveries: Sequence[Delivery]) -> None:
        """Export these, and mark those that were taken."""
        for batch in _batches(deliveries):
            if not self._send_batch(batch):
                return  # the backend is away, and would take the others no better

    def _send_batch(self, batch: Sequence[Delivery]) -> bool:
        """Whether any of it was taken; halved where it was not as a whole."""
        if self._stopping.is_set():
            return False
        if self._export([span for delivery in batch for span in delivery.spans]):
            for delivery in batch:
                delivery.is_exported = True
            return True
        if len(batch) == 1:
            return False
        middle = len(batch) // 2
        first = self._send_batch(batch[:middle])
        # Where neither a half nor the first of the other one is taken, nothing is: an outage costs few tries.
        return self._send_batch(batch[middle:] if first else batch[middle : middle + 1]) or first

    def _export(self, spans: Sequence[object]) -> bool:
        if not spans:
            return True
        have_taken = [
            self._export_by(exporter, spans) for exporter in self._exporters
        ]  # all get them, whatever one says
        return all(have_taken)

    def _shut_down(self, exporter: SpanExporter) -> None:
        try:
            exporter.shutdown()
        except Exception as error:  # noqa: BLE001 - an exporter's code
            self._log.trouble("exporter", "%s failed with %s", type(exporter).__name__, type(error).__name__)

    def _export_by(self, exporter: SpanExporter, spans: Sequence[object]) -> bool:
        try:
            if exporter.export(spans) is not SpanExportResult.SUCCESS:  # type: ignore[arg-type]
                return False
            # An exporter that takes spans in before it sends them says here whether it has sent them.
            return exporter.force_flush(_FLUSH_MILLIS) is not False
        except Exception as error:  # noqa: BLE001 - an exporter's code
            self._log.trouble("exporter", "%s failed with %s", type(exporter).__name__, type(error).__name__)
            return False


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
