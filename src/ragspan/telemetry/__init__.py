"""Scores on OpenTelemetry: the emitter, the engine's own metrics, and the switch that keeps judges out of traces."""

from __future__ import annotations

from ragspan.telemetry.base import AnswerHandle, EmitHandle, Emitter, ScoreEmitter
from ragspan.telemetry.otel_context import is_suppressed, suppressed
from ragspan.telemetry.otel_emitter import OTelEmitter
from ragspan.telemetry.self_metrics import SelfMetrics

__all__ = [
    "AnswerHandle",
    "EmitHandle",
    "Emitter",
    "OTelEmitter",
    "ScoreEmitter",
    "SelfMetrics",
    "is_suppressed",
    "suppressed",
]
