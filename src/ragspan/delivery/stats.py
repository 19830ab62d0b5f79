"""What became of the items that a writer was given."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

DropReason: TypeAlias = Literal[
    "no_span", "queue_full", "queue_bytes", "span_not_found", "unavailable", "failed", "shutdown"
]
"""Why an item was lost that nobody refused. The last trouble, where its time ran out: the backend never got its span, could
not be reached, or failed at it."""
Result: TypeAlias = Literal["delivered", "refused", "dropped"]
Ending: TypeAlias = tuple[Result, str | None]
"""A result with its reason, which a delivery has none of."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DeliveryStats:
    """Where everything is that was emitted: `offered = waiting + delivered + refused + dropped`, at every moment."""

    offered: int
    waiting: int
    """Those that are being written included."""
    delivered: int
    refused: Mapping[str, int]
    """By the backend's reason."""
    dropped: Mapping[str, int]
    """By reason, see `DropReason`."""


@dataclass(slots=True)
class Counts:
    """The counts behind the statistics. Not safe to use from several threads at once."""

    offered: int = 0
    totals: Counter[Ending] = field(default_factory=Counter)
    _untold: Counter[Ending] = field(default_factory=Counter)

    def end(self, result: Result, reason: str | None = None, number: int = 1) -> None:
        if number:
            self.totals[result, reason] += number
            self._untold[result, reason] += number

    @property
    def dropped(self) -> int:
        return sum(number for (result, _), number in self.totals.items() if result == "dropped")

    @property
    def has_news(self) -> bool:
        return bool(self._untold)

    def news(self) -> Counter[Ending]:
        """What ended since this was last asked."""
        untold, self._untold = self._untold, Counter()
        return untold

    def stats(self, waiting: int) -> DeliveryStats:
        return DeliveryStats(
            offered=self.offered,
            waiting=waiting,
            delivered=self.totals["delivered", None],
            refused=self._by_reason("refused"),
            dropped=self._by_reason("dropped"),
        )

    def _by_reason(self, wanted: Result) -> dict[str, int]:
        return {str(reason): number for (result, reason), number in self.totals.items() if result == wanted}
