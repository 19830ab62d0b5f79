"""How deliveries have ended: for the health page, the last line of a worker, and its metrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from opentelemetry.metrics import CallbackOptions, MeterProvider, Observation

from ragspan.telemetry import semconv
from ragspan.telemetry.providers import meter_of
from ragspan_nats.worker.delivery import Verdict


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkerStats:
    """What a worker has done so far. Each figure counts deliveries."""

    in_flight: int = 0
    acknowledged: int = 0
    """Scored, exported, and out of the stream."""
    nacked: dict[str, int] = field(default_factory=dict)
    """To be delivered again, by reason."""
    dead_lettered: dict[str, int] = field(default_factory=dict)
    """Dead letters, by reason."""


class Counts:
    """Counts deliveries by their end. Written in the worker's loop only.

    Args:
        meter_provider: where the metrics go.
        in_flight: how many there are at the moment.
    """

    def __init__(self, meter_provider: MeterProvider, in_flight: Callable[[], int]) -> None:
        self._in_flight = in_flight
        self._acknowledged = 0
        self._nacked: Counter[str] = Counter()
        self._dead_lettered: Counter[str] = Counter()
        meter = meter_of(meter_provider)
        self._deliveries = meter.create_counter(
            semconv.METRIC_FLEET_DELIVERIES,
            unit="{delivery}",
            description="Deliveries of records to workers that have ended: acknowledged, given back, or put aside.",
        )
        meter.create_observable_gauge(
            semconv.METRIC_FLEET_IN_FLIGHT,
            [self._observe],
            unit="{record}",
            description="Records that this worker has in flight.",
        )

    def ended(self, verdict: Verdict) -> None:
        """Count a delivery."""
        attributes = {semconv.RESULT: _RESULTS[verdict.ending]}
        if verdict.reason is None:
            self._acknowledged += 1
        else:
            (self._nacked if verdict.ending == "nak" else self._dead_lettered)[verdict.reason] += 1
            attributes[semconv.REASON] = verdict.reason
        self._deliveries.add(1, attributes)

    def stats(self) -> WorkerStats:
        """How things stand."""
        return WorkerStats(
            in_flight=self._in_flight(),
            acknowledged=self._acknowledged,
            nacked=dict(self._nacked),
            dead_lettered=dict(self._dead_lettered),
        )

    def _observe(self, _: CallbackOptions) -> Iterator[Observation]:
        yield Observation(self._in_flight())


_RESULTS = {
    "ack": semconv.RESULT_ACKNOWLEDGED,
    "nak": semconv.RESULT_NACKED,
    "dead_letter": semconv.RESULT_DEAD_LETTERED,
}
