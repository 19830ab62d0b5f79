"""ragspan: know in production whether a RAG system's answers are grounded.

These names are public; more are in `ragspan.metrics`, `ragspan.judges`, `ragspan.telemetry` and `ragspan.testing`.
Importing ragspan imports no framework and no provider's client.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ragspan.config import Settings
from ragspan.exceptions import ConfigurationError, JudgeError, RagspanError, RecordError
from ragspan.outcomes import Cause, MetricFailure, NotApplicable, Outcome, Score, ScoredRecord
from ragspan.records import (
    AnswerStatus,
    Background,
    Capture,
    Generation,
    RagRecord,
    RecordSink,
    Reranking,
    Retrieval,
    RetrievedContext,
    SpanAnchor,
    ToolCall,
)
from ragspan.step_texts import ErrorReport, Message, ToolRequest
from ragspan.usage import Usage

if TYPE_CHECKING:
    from ragspan.application import Configured, configure
    from ragspan.capturing import Answer, capture, record_contexts
    from ragspan.datasets.one_answer import ascore, score
    from ragspan.defaults import default_engine, set_default_engine
    from ragspan.engine import Budget, Dropped, EngineStats, ScoringEngine, ShutdownReport

__all__ = [
    "Answer",
    "AnswerStatus",
    "Background",
    "Budget",
    "Capture",
    "Cause",
    "ConfigurationError",
    "Configured",
    "Dropped",
    "EngineStats",
    "ErrorReport",
    "Generation",
    "JudgeError",
    "Message",
    "MetricFailure",
    "NotApplicable",
    "Outcome",
    "RagRecord",
    "RagspanError",
    "RecordError",
    "RecordSink",
    "Reranking",
    "Retrieval",
    "RetrievedContext",
    "Score",
    "ScoredRecord",
    "ScoringEngine",
    "Settings",
    "ShutdownReport",
    "SpanAnchor",
    "ToolCall",
    "ToolRequest",
    "Usage",
    "ascore",
    "capture",
    "configure",
    "default_engine",
    "record_contexts",
    "score",
    "set_default_engine",
]

# These import asyncio and OpenTelemetry, which take longer than everything else, so they are imported at first use.
_LAZY = {
    "ragspan.application": ("Configured", "configure"),
    "ragspan.capturing": ("Answer", "capture", "record_contexts"),
    "ragspan.datasets.one_answer": ("ascore", "score"),
    "ragspan.defaults": ("default_engine", "set_default_engine"),
    "ragspan.engine": ("Budget", "Dropped", "EngineStats", "ScoringEngine", "ShutdownReport"),
}
_HOMES = {name: module for module, names in _LAZY.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'ragspan' has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(_HOMES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
