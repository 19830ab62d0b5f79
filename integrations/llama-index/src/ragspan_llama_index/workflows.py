"""Notes of the steps of a workflow which of them are at work, and what a resumed run began with.

A run waits for somebody, a person as a rule, when it has not ended and none of its steps is at work. One that is left in
this state was interrupted, and may be resumed from its saved context, as another run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from ragspan_llama_index.asking import asked_by_event
from ragspan_llama_index.roles import has_base
from ragspan_llama_index.steps import Request


def note_work(request: Request, span_id: str, arguments: Mapping[str, Any]) -> None:
    """A step begins."""
    request.at_work[span_id] = None
    if request.is_resumed and not request.root.asked:  # a step that waited inside is run again from its beginning
        event = next((value for value in arguments.values() if has_base(type(value), "StartEvent")), None)
        request.root.asked = asked_by_event(event)


def note_work_done(request: Request, span_id: str, result: Any) -> None:
    """A step returned. The framework lets it return nothing when it is cancelled at its work, too."""
    if result is not None or not _is_cancelled():
        request.at_work.pop(span_id, None)


def _is_cancelled() -> bool:
    try:
        task = asyncio.current_task()
    except RuntimeError:  # a step that is not asynchronous, in a thread
        return False
    return task is not None and getattr(task, "cancelling", _unknown)() > 0


def _unknown() -> int:
    return 1  # before Python 3.11 a task does not tell
