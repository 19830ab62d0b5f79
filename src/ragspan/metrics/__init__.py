"""The metrics: each turns a record into a score, a reason why there is none, or a failure."""

from __future__ import annotations

from ragspan.metrics.base import Metric, Screening
from ragspan.metrics.contexts import (
    ChunkAttribution,
    ChunkUtilization,
    ContextRelevance,
    ContextUtilization,
    JudgedContext,
)
from ragspan.metrics.faithfulness import Faithfulness, FaithfulnessWithHHEM
from ragspan.metrics.polled import AnswerRelevance, Completeness, ContextAdherence

__all__ = [
    "AnswerRelevance",
    "ChunkAttribution",
    "ChunkUtilization",
    "Completeness",
    "ContextAdherence",
    "ContextRelevance",
    "ContextUtilization",
    "Faithfulness",
    "FaithfulnessWithHHEM",
    "JudgedContext",
    "Metric",
    "Screening",
]
