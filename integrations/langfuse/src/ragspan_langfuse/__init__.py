"""ragspan for Langfuse: scores of observations or traces."""

from __future__ import annotations

from ragspan_langfuse.emitter import LangfuseScores

__all__ = ["LangfuseScores"]
