"""How patiently scores are delivered, and how many may wait."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ragspan.exceptions import ConfigurationError


@dataclass(frozen=True, kw_only=True, slots=True)
class DeliveryOptions:
    """Limits of a `ScoreWriter`.

    Raises:
        ConfigurationError: a limit is not allowed; the message names it.
    """

    queue_size: int = 10_000
    """Items that may wait, at least 1; beyond, the oldest are dropped."""
    queue_bytes: int = 16 * 1024 * 1024
    """Bytes that they may take, at least 1; beyond, the oldest are dropped."""
    batch_size: int = 100
    """Items that are written at once, at least 1."""
    linger: float = 1.0
    """Seconds, 0 or more, that an item waits for others to go along with, and for its span to arrive."""
    retry_window: float = 600.0
    """Seconds, more than 0, from an item's emission on, for which it is tried again; then it is lost."""

    def __post_init__(self) -> None:
        for name in ("queue_size", "queue_bytes", "batch_size"):
            value = getattr(self, name)
            if type(value) is not int or value < 1:
                raise ConfigurationError(f"{name} is {value!r}, but should be a whole number, at least 1")
        if not (_is_number(self.linger) and 0 <= self.linger < math.inf):
            raise ConfigurationError(f"linger is {self.linger!r}, but should be a number of seconds, 0 or more")
        if not (_is_number(self.retry_window) and 0 < self.retry_window < math.inf):
            raise ConfigurationError(
                f"retry_window is {self.retry_window!r}, but should be a number of seconds, more than 0"
            )


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
