"""What this process uses: the one owner of state that is the process's, and not an engine's or a handler's."""

from __future__ import annotations

import contextlib
import logging
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any, TypeVar, cast

from ragspan.exceptions import ConfigurationError
from ragspan.forks import watch_forks
from ragspan.throttled_log import log_line

_T = TypeVar("_T")


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
