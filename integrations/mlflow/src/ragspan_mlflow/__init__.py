"""ragspan for MLflow: scores as assessments, and an exporter that brings the spans."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ragspan_mlflow.emitter import MLflowAssessments

if TYPE_CHECKING:
    from ragspan_mlflow.exporting import MLflowSpanExporter

__all__ = ["MLflowAssessments", "MLflowSpanExporter"]


def __getattr__(name: str) -> Any:
    if name == "MLflowSpanExporter":  # brings Requests and OTLP with it, which an engine without it need not load
        from ragspan_mlflow.exporting import MLflowSpanExporter

        return MLflowSpanExporter
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
