"""The record of one answered request, independent of any framework.

All times are Unix nanoseconds. All text is the user's data and is never interpreted.
"""

from __future__ import annotations

from ragspan.records.contexts import (
    MAX_BACKGROUND,
    Background,
    BackgroundKind,
    RetrievedContext,
    as_background,
    as_contexts,
    identifier,
)
from ragspan.records.record import AnswerStatus, Capture, RagRecord, RecordSink, UnknownContexts
from ragspan.records.steps import Generation, Reranking, Retrieval, SpanAnchor, Step, ToolCall

__all__ = [
    "MAX_BACKGROUND",
    "AnswerStatus",
    "Background",
    "BackgroundKind",
    "Capture",
    "Generation",
    "RagRecord",
    "RecordSink",
    "Reranking",
    "Retrieval",
    "RetrievedContext",
    "SpanAnchor",
    "Step",
    "ToolCall",
    "UnknownContexts",
    "as_background",
    "as_contexts",
    "identifier",
]
