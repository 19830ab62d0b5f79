"""What a fork does to deliveries: its child has nothing to deliver, and connects anew.

Guarantees:
- The hook lasts as long as the process and holds what it watches weakly: it keeps nothing alive.
- What the child inherits is never collected: that would close connections which both processes share.
"""

from __future__ import annotations

import contextlib
import os
import weakref
from typing import Protocol


class StartsAfresh(Protocol):
    """Something with an outbox of its own."""

    def start_afresh(self) -> object:
        """Make a new outbox; returns the old one, which is the parent's."""
        ...


_watched: weakref.WeakSet[StartsAfresh] = weakref.WeakSet()
_inherited: list[object] = []


def watch_forks(owner: StartsAfresh) -> None:
    """Have it start afresh in every child of a fork, for as long as it lives."""
    _watched.add(owner)


def _start_afresh_in_child() -> None:
    for owner in list(_watched):
        with contextlib.suppress(Exception):  # the others have to start afresh whatever becomes of this one
            _inherited.append(owner.start_afresh())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_afresh_in_child)
