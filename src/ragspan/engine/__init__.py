"""The background engine: the only place with threads, queues, forks and exits."""

from __future__ import annotations

from ragspan.engine.budget import Budget
from ragspan.engine.scoring_engine import ScoringEngine
from ragspan.engine.stats import Dropped, DropReason, EngineStats, ShutdownReport

__all__ = ["Budget", "DropReason", "Dropped", "EngineStats", "ScoringEngine", "ShutdownReport"]
