"""Ctrl-C while an evaluation runs: the first one asks it to stop after the row in hand, a second one insists.

Raised anywhere, `KeyboardInterrupt` could come between a row's result and the note of it. So it is held back while rows are
worked on, and raised only where rows are waited for, which may take for ever. Signals reach the main thread alone, and so
does this.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any, TypeVar

_T = TypeVar("_T")


class Interruption:
    """Takes Ctrl-C for as long as it is entered, in the main thread."""

    def __init__(self) -> None:
        self._is_requested = False
        self._is_held_back = False
        self._before: Any = None

    def is_requested(self) -> bool:
        return self._is_requested

    def reading(self, entries: Iterator[_T]) -> Iterator[_T]:
        """The same entries, of which there are no more once an end was asked for."""
        try:
            while not self._is_requested:
                self._is_held_back = False
                entry = next(entries)
                self._is_held_back = True
                yield entry
        except StopIteration:
            pass
        except KeyboardInterrupt:
            self._is_requested = True
        self._is_held_back = True  # the last rows are still worked on

    def __enter__(self) -> Interruption:  # noqa: PYI034 - Python 3.10 has no Self
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._interrupt)
        return self

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def _interrupt(self, _signal: int, _frame: FrameType | None) -> None:
        if self._is_requested or not self._is_held_back:
            raise KeyboardInterrupt
        self._is_requested = True
