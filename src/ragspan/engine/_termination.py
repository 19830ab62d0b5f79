"""SIGTERM: finished answers are scored and exported before the process ends.

Guarantees:
- A handler that the application has set is called first and decides what happens, as it would without ragspan.
- Where there is none the process ends by the signal, as it would without ragspan, when the engines are done or their
  `exit_timeout` is over.
- uvicorn handles the signal, and at its end raises it again for the system, which runs no exit hook. In that thread the
  signal is then held back, so that the interpreter ends in good order and its exit hooks run.
- Only the main thread can set a handler: an engine that is made elsewhere leaves the signal alone.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

_RAISES_AGAIN = "uvicorn"


class _Termination:
    """The handler of this process; the child of a fork inherits it with all handlers."""

    def __init__(self) -> None:
        self._before: Callable[[int, FrameType | None], Any] | int | None = None
        self._finish: Callable[[], None] | None = None

    def watch(self, finish: Callable[[], None]) -> None:
        """Call `finish` at SIGTERM; does nothing where the signal is ignored, or handled by something that is not Python."""
        if self._finish is not None or threading.current_thread() is not threading.main_thread():
            return
        before = signal.getsignal(signal.SIGTERM)
        if before is None or before is signal.SIG_IGN:
            return
        self._before, self._finish = before, finish
        signal.signal(signal.SIGTERM, self._handle)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if callable(self._before):
            self._before(number, frame)
            if type(getattr(self._before, "__self__", None)).__module__.startswith(_RAISES_AGAIN):
                signal.pthread_sigmask(signal.SIG_BLOCK, {number})
        elif self._finish is not None:
            self._finish()
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
            signal.signal(number, self._handle)  # the first process of a container survives its own signals


_termination = _Termination()


def watch_termination(finish: Callable[[], None]) -> None:
    """Call `finish`, which keeps its own time, before SIGTERM ends this process."""
    if os.name == "posix":
        _termination.watch(finish)
