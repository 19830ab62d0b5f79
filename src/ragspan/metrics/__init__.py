"""The metrics: each turns a record into a score, a reason why there is none, or a failure."""

from __future__ import annotations

from ragspan.metrics.faithfulness import Faithfulness, FaithfulnessWithHHEM
from ragspan.metrics.metric import Metric, Screening
from ragspan.metrics.polled import AnswerRelevance, Completeness, ContextAdherence
from ragspan.metrics.single_contexts import (
    ChunkAttribution,
    ChunkUtilization,
    ContextRelevance,
    ContextUtilization,
    JudgedContext,
)

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
