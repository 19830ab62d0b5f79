"""One registry of everything that has threads, locks or connections and must react to a fork; owners are held weakly."""

from __future__ import annotations

import contextlib
import os
import weakref
from collections.abc import Callable
from typing import Any, TypeVar

_T = TypeVar("_T")

# All uses are single operations of the dictionaries, so there is no lock that a fork could leave held.
_in_child: dict[weakref.ref[Any], Callable[[Any], None]] = {}
_inherited: list[object] = []

keep_inherited = _inherited.append
"""Keep work that a fork copied from the parent: to collect it would end the parent's unfinished calls on shared connections."""


def watch_forks(owner: _T, after_in_child: Callable[[_T], None]) -> None:
    """Call `after_in_child(owner)` in every child of a fork, for as long as the owner lives."""
    _in_child[weakref.ref(owner, lambda reference: _in_child.pop(reference, None))] = after_in_child


def _tell_owners() -> None:
    # A list of the keys only: making pairs could start a garbage collection, which may change the dictionary.
    for reference in list(_in_child):
        owner, call = reference(), _in_child.get(reference)
        if owner is not None and call is not None:
            with contextlib.suppress(Exception):  # the others are told all the same
                call(owner)


if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(after_in_child=_tell_owners)
