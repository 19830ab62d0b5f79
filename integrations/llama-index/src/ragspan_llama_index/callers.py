"""Tells work of the framework that answers nobody from an answer, by the code that calls it."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from types import FrameType

from ragspan_llama_index.roles import has_base

_INDEX_FRAMES = 30  # between a synthesizer's span and the index that called it there are about ten
_EVALUATOR_FRAMES = 10  # between an engine's span and the evaluator that asks it there are about five
_EVALUATING = frozenset({"aevaluate", "evaluate"})


def builds_an_index() -> bool:
    """Whether the caller is called by the framework's own indices, outside of any query: they ask for summaries."""
    return any(_module(frame).startswith("llama_index.core.indices.") for frame in _callers(_INDEX_FRAMES))


def evaluates() -> bool:
    """Whether the caller is called by an evaluator, which asks an engine of its own whether an answer is good."""
    frame = inspect.currentframe()
    for _ in range(_EVALUATOR_FRAMES):  # at every request: no generator
        if frame is None:
            return False
        if frame.f_code.co_name in _EVALUATING and has_base(type(frame.f_locals.get("self")), "BaseEvaluator"):
            return True
        frame = frame.f_back
    return False


def _callers(most: int) -> Iterator[FrameType]:
    frame = inspect.currentframe()
    for _ in range(most):
        if frame is None:
            return
        yield frame
        frame = frame.f_back


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))
