"""Tells what became of items: to the metrics about ragspan itself, and trouble to the log."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ragspan.delivery.destination import BatchRefused, Unavailable
from ragspan.delivery.stats import Ending
from ragspan.telemetry.delivery_metrics import DeliveryMetrics
from ragspan.throttled_log import ThrottledLog

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider

_NO_TROUBLE = "no_span"  # an answer that is not sampled is not there to be annotated


class Report:
    """The voice of one writer.

    Args:
        name: of the destination.
        items: what it is given.
        meter_provider: None means the global one, whenever it is set.
        log: at most one line a minute for each kind of trouble.
    """

    def __init__(
        self,
        name: str,
        *,
        items: str = "scores",
        meter_provider: MeterProvider | None = None,
        log: ThrottledLog | None = None,
    ) -> None:
        self._name = name
        self._items = items
        self._metrics = DeliveryMetrics(name, meter_provider)
        self._log = log or ThrottledLog()

    def tell(self, news: Mapping[Ending, int], trouble: BaseException | None, waiting: int) -> None:
        """Count what ended; log what was lost, and what went wrong on the way.

        Args:
            news: how many items ended in each way.
            trouble: what a write raised; its type is logged, and of the backend's own words only `Unavailable.reason`.
            waiting: items that are left.
        """
        for (result, reason), number in news.items():
            with contextlib.suppress(Exception):  # of a meter provider that is not the SDK's
                self._metrics.ended(number, result, reason)
            if result != "delivered" and reason != _NO_TROUBLE:
                self._log.trouble(
                    f"{result} {reason}", "%s: %d %s were %s: %s", self._name, number, self._items, result, reason
                )
        if trouble is not None and not isinstance(trouble, BatchRefused):  # that shows in what was refused
            kind = trouble.reason if isinstance(trouble, Unavailable) else type(trouble).__name__
            self._log.trouble(
                "trouble", "%s took no %s: %s; %d wait to be tried again", self._name, self._items, kind, waiting
            )
