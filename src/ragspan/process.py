"""What this process uses, the one owner of state that is not an engine's or a handler's; and what must react to a fork."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any, TypeVar, cast

from ragspan.exceptions import ConfigurationError
from ragspan.throttled_log import log_line

_T = TypeVar("_T")

# Everything that has threads, locks or connections, held weakly.
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


class InUse:
    """What the process uses; None is nothing yet.

    `lock` is held while engine or sink is made, `setting_up` while `configure` works; the child of a fork has its own.
    """

    def __init__(self) -> None:
        self.sink: Any = None
        """Takes the captures of handlers that are given no sink: an engine, or the sink of `RAGSPAN_SINK`."""
        self.engine: Any = None
        """The `ScoringEngine` that `default_engine` has made where the sink is another one."""
        self.configured: Any = None
        """The `Configured` of the last `configure`."""
        self.provider_ends: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
        """The `ProviderEnd` of each provider of spans that somebody writes to."""
        self.said: set[str] = set()
        """Lines of the log that are said once."""
        self._only: dict[Callable[[], Any], Any] = {}
        self._renew_locks()
        watch_forks(self, InUse._renew_locks)

    def only(self, make: Callable[[], _T]) -> _T:
        """What this function or class makes, once in the process."""
        made = self._only.get(make)
        if made is None:
            with self.lock:
                made = self._only.get(make) or self._only.setdefault(make, make())
        return cast("_T", made)

    def say_once(self, level: int, words: str) -> None:
        """Log the line, unless this process has."""
        if words not in self.said:
            self.said.add(words)
            log_line(level, "%s", words)

    def _renew_locks(self) -> None:
        """A thread that the child does not have may hold the parent's."""
        self.lock = threading.RLock()
        self.setting_up = threading.RLock()


in_use = InUse()


@contextlib.contextmanager
def set_up_or_off() -> Iterator[None]:
    """Whatever fails inside is one line in the log: OpenTelemetry's launcher would load no instrumentor after one that raises."""
    try:
        yield
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the module of RAGSPAN_REDACT may do anything
        why = str(error) if isinstance(error, ConfigurationError) else f"{type(error).__name__}: {error}"
        in_use.say_once(logging.ERROR, f"ragspan is off, and no answer is captured: {' '.join(why.split())}")
