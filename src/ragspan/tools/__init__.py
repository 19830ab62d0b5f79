"""Tools that keep scores of their own, and what delivers to them: off the hot path, retried, and counted. Alerts go to a webhook.

Each tool is one module and needs the extra of its name, such as `ragspan[phoenix]`. Its emitter derives from `ScoreWriter`, and
says where the server is, how a batch of annotations is written there, and what a reply means.
"""

from __future__ import annotations

from ragspan.tools.delivery import (
    BatchRejected,
    Delivered,
    DeliveryOptions,
    DeliveryStats,
    DeliveryStatus,
    DropReason,
    ExportError,
    SpanNotFound,
    Unavailable,
    WriteResult,
)
from ragspan.tools.sender import Sender
from ragspan.tools.writer import Annotation, ScoreWriter

__all__ = [
    "Annotation",
    "BatchRejected",
    "Delivered",
    "DeliveryOptions",
    "DeliveryStats",
    "DeliveryStatus",
    "DropReason",
    "ExportError",
    "ScoreWriter",
    "Sender",
    "SpanNotFound",
    "Unavailable",
    "WriteResult",
]
