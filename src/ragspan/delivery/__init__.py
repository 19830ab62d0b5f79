"""Delivers scores to backends that have scores of their own: off the hot path, retried, and counted.

A backend's package derives its emitter from `ScoreWriter` and says where the server is, and how a batch of annotations is
written there.
"""

from __future__ import annotations

from ragspan.delivery.batch_sender import BatchSender
from ragspan.delivery.retry_queue import DeliveryState, DeliveryStatus
from ragspan.delivery.write_results import (
    BatchRejected,
    Deliverable,
    Delivered,
    DeliveryOptions,
    DeliveryStats,
    DropReason,
    ExportError,
    Failed,
    Rejected,
    SpanNotFound,
    Unavailable,
    WriteResult,
)
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
    "ExportError",
    "Failed",
    "Rejected",
    "ScoreWriter",
    "SpanNotFound",
    "Unavailable",
    "WriteResult",
]
