"""ragspan for Datadog: scores as evaluations in LLM Observability."""

from __future__ import annotations

from ragspan_datadog.emitter import DatadogEvaluations

__all__ = ["DatadogEvaluations"]
