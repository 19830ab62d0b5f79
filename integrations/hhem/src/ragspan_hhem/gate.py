"""Keeps torch from computing while the process forks or ends.

torch's kernels hold locks while they compute. A fork copies a held lock, and the child waits for it for ever. At the end of the
process Python unwinds its daemon threads, and aborts if one is inside torch. Both wait for the current step, five seconds at most.
"""

from __future__ import annotations

import atexit
import os
import threading

_PATIENCE = 5.0  # seconds: the longest steps take one


class Gate:
    """Lets one thread in at a time. While the gate is closed, the thread waits between its steps.

    Args:
        patience: seconds that `close` waits for a step to end.
    """

    def __init__(self, patience: float = _PATIENCE) -> None:
        self._patience = patience
        self.begin_anew()

    def begin_anew(self) -> None:
        """Open, with no thread inside. For the child of a fork, where other threads do not exist."""
        self._changed = threading.Condition()
        self._is_taken = False
        self._closings = 0

    def __enter__(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: not self._is_taken and not self._closings)
            self._is_taken = True

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._is_taken = False
            self._changed.notify_all()

    def step(self) -> None:
        """Called by the thread inside, between two steps. It may wait here, and other threads may go first."""
        self.__exit__()
        self.__enter__()

    def close(self) -> bool:
        """Let no thread in or go on, and wait for the current step; whether it has ended in time."""
        with self._changed:
            self._closings += 1
            return self._changed.wait_for(lambda: not self._is_taken, self._patience)

    def open(self) -> None:
        """Undo one `close`."""
        with self._changed:
            self._closings -= 1
            self._changed.notify_all()


GATE = Gate()
"""Of this process."""

atexit.register(GATE.close)
if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork either
    os.register_at_fork(before=GATE.close, after_in_parent=GATE.open, after_in_child=GATE.begin_anew)
