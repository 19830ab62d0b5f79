"""What it takes to have a handler at work in some runs of a program and not in others."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

from interleaved import Handlers


@dataclass(frozen=True, kw_only=True, slots=True)
class Attachment:
    """A handler, ready for work."""

    handlers: Handlers = field(default_factory=list)
    """To be given to each run."""
    active: Callable[[], AbstractContextManager[object]] = nullcontext
    """Around runs: switches on what finds its way into them by itself."""
    settle: Callable[[], object] = lambda: None
    """Sends what is still to be exported, and returns when it is sent."""
