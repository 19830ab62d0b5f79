"""Delivers scores to backends that have scores of their own: off the hot path, retried, and counted.

A backend's package derives its emitter from `ScoreWriter` and says how a batch of annotations becomes requests, and what a reply
means. `ragspan.delivery.http` has the HTTP client for it.
"""

from __future__ import annotations

from ragspan.delivery._retry_queue import DeliveryState, DeliveryStatus
from ragspan.delivery.backend import (
    BatchRejected,
    Deliverable,
    Delivered,
    DeliveryOptions,
    DeliveryStats,
    DropReason,
    Failed,
    Rejected,
    ScoreBackend,
    SpanNotFound,
    Unavailable,
    WriteResult,
)
from ragspan.delivery.batch_sender import BatchSender
from ragspan.delivery.writer import Annotation, ScoreWriter

__all__ = [
    "Annotation",
    "BatchRejected",
    "BatchSender",
    "Deliverable",
    "Delivered",
    "DeliveryOptions",
    "DeliveryState",
    "DeliveryStats",
    "DeliveryStatus",
    "DropReason",
    "Failed",
    "Rejected",
    "ScoreBackend",
    "ScoreWriter",
    "SpanNotFound",
    "Unavailable",
    "WriteResult",
]
