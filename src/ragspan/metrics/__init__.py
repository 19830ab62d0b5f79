"""The metrics: each turns a record into a score, a reason why there is none, or a failure."""

from __future__ import annotations

from ragspan.metrics.citation_correctness import CitationCorrectness
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

__all__ = [  # noqa: RUF022 - metrics in the order of the documentation, in which all reports have them
    "ContextAdherence",
    "Completeness",
    "ContextUtilization",
    "Faithfulness",
    "FaithfulnessWithHHEM",
    "AnswerRelevance",
    "ContextRelevance",
    "ChunkAttribution",
    "ChunkUtilization",
    "CitationCorrectness",
    # what they are made of
    "JudgedContext",
    "Metric",
    "Screening",
]
