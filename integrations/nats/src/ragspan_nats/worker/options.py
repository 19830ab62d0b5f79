"""What a worker is told, checked where it is made."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ragspan.exceptions import ConfigurationError
from ragspan.record_json import MAX_JSON

_SECONDS: Sequence[tuple[str, str, Callable[[float], bool]]] = (
    ("ack_wait", "1 or more", lambda seconds: seconds >= 1),
    ("drain_timeout", "0 or more", lambda seconds: seconds >= 0),
    ("export_retry_timeout", "more than 0", lambda seconds: seconds > 0),
)
_LEAST = {
    "concurrency": 1,
    "max_deliveries": 1,
    "max_ack_pending": 1,
    "max_in_flight": 0,
    "max_in_flight_bytes": MAX_JSON,
}
BACK_OFF = (5.0, 30.0, 120.0, 600.0)
"""Seconds until a record that could not be scored comes again, after its first delivery, its second, and so on."""


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkerOptions:
    """How a worker works.

    Raises:
        ConfigurationError: a figure is out of its range.
    """

    concurrency: int = 16
    """Records that are scored at the same time, at least 1."""
    ack_wait: float = 30.0
    """Seconds without a sign of this worker after which the broker gives its records to others, 1 or more. A worker gives
    three signs in that time, however long a judge takes."""
    max_deliveries: int = 5
    """How often a record is delivered before it is put aside, at least 1."""
    max_ack_pending: int = 10_000
    """Records that all workers together may have in flight, at least 1."""
    drain_timeout: float = 25.0
    """Seconds that a worker which is told to stop may take for what it has in flight, 0 or more; the rest is given back."""
    export_retry_timeout: float = 600.0
    """Seconds for which scores are kept that the backend does not take, more than 0. No new records are taken up meanwhile
    than there is room for; after that the record is given back, to be scored again."""
    max_in_flight: int = 0
    """Records that this worker may hold, those included whose scores wait for their export; 0 is four times `concurrency`,
    and 256 at least."""
    max_in_flight_bytes: int = 128 * 1024 * 1024
    """Bytes of JSON that these records may take together, at least 4 MiB, which is one record of the largest size."""

    def __post_init__(self) -> None:
        for name, least in _LEAST.items():
            value = getattr(self, name)
            if type(value) is not int or value < least:
                raise ConfigurationError(f"{name} is {value!r}, but should be a whole number, {least} or more")
        for name, allowed, fits in _SECONDS:
            seconds = getattr(self, name)
            if type(seconds) not in (int, float) or not (math.isfinite(seconds) and fits(seconds)):
                raise ConfigurationError(f"{name} is {seconds!r}, but should be seconds, {allowed}")

    @property
    def room(self) -> int:
        """Records that this worker may hold."""
        return max(self.concurrency, self.max_in_flight or max(256, 4 * self.concurrency))

    def back_off(self, number: int) -> float:
        """Seconds until a record comes again whose delivery `number`, from 1, came to nothing."""
        return BACK_OFF[min(number, len(BACK_OFF)) - 1]
