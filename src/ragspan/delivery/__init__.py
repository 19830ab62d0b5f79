"""Delivers scores to backends that have scores of their own: off the hot path, with patience, and counted.

A backend's package derives its emitter from `ScoreWriter` and says what is written, and how one batch is.
"""

from __future__ import annotations

from ragspan.delivery.destination import (
    BatchRefused,
    Deliverable,
    Delivered,
    Destination,
    Failed,
    NotThereYet,
    Refused,
    Unavailable,
    WriteResult,
)
from ragspan.delivery.options import DeliveryOptions
from ragspan.delivery.receipt import Fate, Receipt
from ragspan.delivery.stats import DeliveryStats, DropReason
from ragspan.delivery.writer import ScoreWriter

__all__ = [
    "BatchRefused",
    "Deliverable",
    "Delivered",
    "DeliveryOptions",
    "DeliveryStats",
    "Destination",
    "DropReason",
    "Failed",
    "Fate",
    "NotThereYet",
    "Receipt",
    "Refused",
    "ScoreWriter",
    "Unavailable",
    "WriteResult",
]
