"""Scores as MLflow assessments, and an exporter that brings the spans."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ragspan.emitters.mlflow.assessments import MLflowEmitter

if TYPE_CHECKING:
    from ragspan.emitters.mlflow.exporting import MLflowSpanExporter

__all__ = ["MLflowEmitter", "MLflowSpanExporter"]


def __getattr__(name: str) -> Any:
    if name == "MLflowSpanExporter":  # brings Requests and OTLP with it, which an engine without it need not load
        from ragspan.emitters.mlflow.exporting import MLflowSpanExporter

        return MLflowSpanExporter
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
