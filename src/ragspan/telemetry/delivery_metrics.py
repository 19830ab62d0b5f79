"""What becomes of the scores that go to a backend's own: `ragspan.deliveries`."""

from __future__ import annotations

from opentelemetry import metrics
from opentelemetry.metrics import MeterProvider

from ragspan.telemetry import semconv
from ragspan.telemetry.providers import meter_of
from ragspan.telemetry.values import encodable, named


class DeliveryMetrics:
    """The instrument of a writer; writers share the instrument of a provider.

    Args:
        destination: the backend's name.
        meter_provider: None means the global one, whenever it is set.
    """

    def __init__(self, destination: str, meter_provider: MeterProvider | None = None) -> None:
        self._destination = named(destination)
        self._deliveries = meter_of(meter_provider or metrics.get_meter_provider()).create_counter(
            semconv.METRIC_DELIVERIES,
            unit="{score}",
            description="Scores that are done with: delivered to the backend, refused by it, or dropped.",
        )

    def ended(self, number: int, result: str, reason: str | None) -> None:
        """Count scores of which the same has become."""
        attributes = {
            semconv.DESTINATION: self._destination,
            semconv.RESULT: result,
            semconv.REASON: reason and named(reason),
        }
        self._deliveries.add(number, encodable(attributes))
