"""Scores on OpenTelemetry: the emitter, and the switch that keeps judges out of traces."""

from __future__ import annotations

from ragspan.telemetry.emitter_protocols import AnswerHandle, Emitter, ScoreEmitter
from ragspan.telemetry.otel_context import is_suppressed, suppressed
from ragspan.telemetry.otel_emitter import OTelEmitter

__all__ = [
    "AnswerHandle",
    "Emitter",
    "OTelEmitter",
    "ScoreEmitter",
    "is_suppressed",
    "suppressed",
]
