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

    in_hand: int = 0
    acknowledged: int = 0
    """Scored, exported, and out of the stream."""
    given_back: dict[str, int] = field(default_factory=dict)
    """To be delivered again, by reason."""
    put_aside: dict[str, int] = field(default_factory=dict)
    """Dead letters, by reason."""


class Counts:
    """Counts deliveries by their end. Written in the worker's loop only.

    Args:
        meter_provider: where the metrics go.
        in_hand: how many there are at the moment.
    """

    def __init__(self, meter_provider: MeterProvider, in_hand: Callable[[], int]) -> None:
        self._in_hand = in_hand
        self._acknowledged = 0
        self._given_back: Counter[str] = Counter()
        self._put_aside: Counter[str] = Counter()
        meter = meter_of(meter_provider)
        self._deliveries = meter.create_counter(
            semconv.METRIC_FLEET_DELIVERIES,
            unit="{delivery}",
            description="Deliveries of records to workers that have ended: acknowledged, given back, or put aside.",
        )
        meter.create_observable_gauge(
            semconv.METRIC_FLEET_IN_HAND,
            [self._observe],
            unit="{record}",
            description="Records that this worker has in hand.",
        )

    def ended(self, verdict: Verdict) -> None:
        """Count a delivery."""
        attributes = {semconv.RESULT: _RESULTS[verdict.ending]}
        if verdict.reason is None:
            self._acknowledged += 1
        else:
            (self._given_back if verdict.ending == "give_back" else self._put_aside)[verdict.reason] += 1
            attributes[semconv.REASON] = verdict.reason
        self._deliveries.add(1, attributes)

    def stats(self) -> WorkerStats:
        """How things stand."""
        return WorkerStats(
            in_hand=self._in_hand(),
            acknowledged=self._acknowledged,
            given_back=dict(self._given_back),
            put_aside=dict(self._put_aside),
        )

    def _observe(self, _: CallbackOptions) -> Iterator[Observation]:
        yield Observation(self._in_hand())


_RESULTS = {
    "acknowledge": semconv.RESULT_ACKNOWLEDGED,
    "give_back": semconv.RESULT_GIVEN_BACK,
    "put_aside": semconv.RESULT_PUT_ASIDE,
}
