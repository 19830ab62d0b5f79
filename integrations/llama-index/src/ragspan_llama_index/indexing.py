"""Tells the building of an index, which asks synthesizers for summaries, from an answer."""

from __future__ import annotations

import inspect

_FRAMES = 30  # between a synthesizer's span and the code that called it there are about ten


def builds_an_index() -> bool:
    """Whether the caller is called by the framework's own indices, outside of any query."""
    frame = inspect.currentframe()
    for _ in range(_FRAMES):
        if frame is None:
            return False
        if str(frame.f_globals.get("__name__", "")).startswith("llama_index.core.indices."):
            return True
        frame = frame.f_back
    return False
