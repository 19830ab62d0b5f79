"""ragspan: know in production whether a RAG system's answers are grounded.

These names are what most programs need; `docs/reference` lists all public names.
Importing ragspan imports no framework and no provider's client.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ragspan.exceptions import ConfigurationError
from ragspan.outcomes import MetricFailure, NotApplicable, Score, ScoredRecord
from ragspan.records import Background, RagRecord, RetrievedContext

if TYPE_CHECKING:
    from ragspan.application import configure
    from ragspan.capturing import capture, record_contexts
    from ragspan.defaults import default_engine, set_default_engine
    from ragspan.engine import Budget, Dropped, ScoringEngine
    from ragspan.evaluate.scoring import ascore, score

__all__ = [
    "Background",
    "Budget",
    "ConfigurationError",
    "Dropped",
    "MetricFailure",
    "NotApplicable",
    "RagRecord",
    "RetrievedContext",
    "Score",
    "ScoredRecord",
    "ScoringEngine",
    "ascore",
    "capture",
    "configure",
    "default_engine",
    "record_contexts",
    "score",
    "set_default_engine",
]

# These import asyncio and OpenTelemetry, which take longer than everything else, so they are imported at first use.
_HOMES = {
    "configure": "ragspan.application",
    **dict.fromkeys(("capture", "record_contexts"), "ragspan.capturing"),
    **dict.fromkeys(("ascore", "score"), "ragspan.evaluate.scoring"),
    **dict.fromkeys(("default_engine", "set_default_engine"), "ragspan.defaults"),
    **dict.fromkeys(("Budget", "Dropped", "ScoringEngine"), "ragspan.engine"),
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'ragspan' has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(_HOMES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
