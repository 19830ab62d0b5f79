"""The metrics: each turns a record into a score, a reason why there is none, or a failure."""

from __future__ import annotations

from ragspan.metrics._contexts import JudgedContext
from ragspan.metrics.answer_relevance import AnswerRelevance
from ragspan.metrics.base import Metric, Screening
from ragspan.metrics.chunk_attribution import ChunkAttribution
from ragspan.metrics.chunk_utilization import ChunkUtilization
from ragspan.metrics.completeness import Completeness
from ragspan.metrics.context_adherence import ContextAdherence
from ragspan.metrics.context_relevance import ContextRelevance
from ragspan.metrics.context_utilization import ContextUtilization
from ragspan.metrics.faithfulness import Faithfulness, FaithfulnessWithHHEM
from ragspan.metrics.reference import Reference

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
    "Reference",
    "Screening",
]
