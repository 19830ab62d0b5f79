"""Scores as Phoenix annotations of spans and documents."""

from __future__ import annotations

from ragspan.emitters.phoenix.annotations import PhoenixEmitter

__all__ = ["PhoenixEmitter"]
