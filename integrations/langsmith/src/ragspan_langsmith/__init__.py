"""ragspan for LangSmith: scores as feedback on runs."""

from __future__ import annotations

from ragspan_langsmith.emitter import LangSmithFeedback

__all__ = ["LangSmithFeedback"]
