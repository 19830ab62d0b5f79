"""Keeps torch from being in the middle of something when the process forks or ends.

torch's kernels hold locks while they compute. A fork copies one that is held, and the child waits for it for ever, on a
processor. At the end of the process Python ends its daemon threads by unwinding them, and aborts if one is inside torch.

Guarantees:
- One computation at a time goes on in a process. It pauses between its steps while a fork is made, and for good when the
  process ends.
- A fork, and the end of the process, wait for the step that is under way, five seconds at most.
- The child of a fork begins with nobody inside.
"""

from __future__ import annotations

import atexit
import os
import threading

_PATIENCE = 5.0  # seconds: the longest steps take one


class Gate:
    """Lets one thread at a time in, and between steps keeps it waiting while the gate is closed.

    Args:
        patience: seconds that `close` waits for a step to end.
    """

    def __init__(self, patience: float = _PATIENCE) -> None:
        self._patience = patience
        self.begin_anew()

    def begin_anew(self) -> None:
        """Open, with nobody inside. In the child of a fork: whoever was inside is not there."""
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
        """Called by who is inside, where it may be kept waiting; others may get in meanwhile."""
        self.__exit__()
        self.__enter__()

    def close(self) -> bool:
        """Let nobody in or go on; whether nobody is inside when the patience is at its end."""
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
