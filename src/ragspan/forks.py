"""What happens at a fork: one registry for all that has threads, locks or connections.

Guarantees:
- The hook lasts as long as the process and holds its owners weakly: it keeps none of them alive.
- Every owner is told, in the order of their registrations, whatever becomes of the others.
- What the child inherits of the parent's work is never collected: that would end the parent's unfinished calls, on
  connections that both processes share, and make its event loop deaf, for they share a selector, too.
"""

from __future__ import annotations

import contextlib
import os
import weakref
from collections.abc import Callable
from typing import Any, TypeVar

_T = TypeVar("_T")

# Dictionaries of which only single operations are used: no lock, which a fork could leave held.
_in_child: dict[weakref.ref[Any], Callable[[Any], None]] = {}
_in_parent: dict[weakref.ref[Any], Callable[[Any], None]] = {}
_inherited: list[object] = []


def watch_forks(
    owner: _T, after_in_child: Callable[[_T], None], *, after_in_parent: Callable[[_T], None] | None = None
) -> None:
    """Call `after_in_child(owner)` in every child of a fork, for as long as the owner lives."""
    _in_child[weakref.ref(owner, lambda reference: _in_child.pop(reference, None))] = after_in_child
    if after_in_parent is not None:
        _in_parent[weakref.ref(owner, lambda reference: _in_parent.pop(reference, None))] = after_in_parent


def keep_inherited(work: object) -> None:
    """Keep what a fork left of the parent's work for good."""
    _inherited.append(work)


def _tell(watched: dict[weakref.ref[Any], Callable[[Any], None]]) -> None:
    for reference in list(
        watched
    ):  # of the keys only: pairs are new objects, for which a collection may change the dictionary
        owner, call = reference(), watched.get(reference)
        if owner is not None and call is not None:
            with contextlib.suppress(Exception):
                call(owner)


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork either
    os.register_at_fork(after_in_child=lambda: _tell(_in_child), after_in_parent=lambda: _tell(_in_parent))
