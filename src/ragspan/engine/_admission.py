"""Where captures come in: what the engine and the sinks that are built like it have in common.

`submit` is inherited rather than called: where there is hardly any stack left, one call more would be one too many.
"""

from __future__ import annotations

from operator import index
from typing import Protocol

from ragspan.engine._backlog import Backlog
from ragspan.engine._boundary import attempt
from ragspan.engine._queue import Item
from ragspan.records import Capture

_STACK = 12  # calls: more than letting a capture in takes


class _Parts(Protocol):
    @property
    def backlog(self) -> Backlog: ...


class Admission:
    """Lets captures into the backlog of `_parts`. Never raises, whatever a capture does."""

    _parts: _Parts

    def submit(self, capture: Capture) -> None:
        """Take a capture, to be scored later."""
        backlog = self._parts.backlog
        try:
            size = max(0, index(capture.size_hint))
            _require_stack(_STACK)  # what is needed has to be there before anything is changed
        except Exception:  # noqa: BLE001 - the capture's code
            try:
                backlog.refuse("capture_error")
            except Exception:  # noqa: BLE001 - no room on the stack
                backlog.uncounted += 1  # takes no call, for which there may be no room
        else:
            backlog.submit(Item(capture, size))

    def count_error(self, place: str) -> None:
        """Count something that went wrong on the way to `submit`, by a name of few; it shows in `stats().errors`.

        Never raises, and may be called from wherever `submit` may.
        """
        attempt(self._parts.backlog.went_wrong, place)


def _require_stack(calls: int) -> None:
    """Raise `RecursionError` unless there is room on the stack for so many calls, one inside the other."""
    if calls:
        _require_stack(calls - 1)
