"""ragspan for Phoenix: scores as annotations of spans and documents."""

from __future__ import annotations

from ragspan_phoenix.emitter import PhoenixAnnotations

__all__ = ["PhoenixAnnotations"]
