"""Flushes providers within a time limit that their SDK does not keep.

Guarantees:
- `flush` returns when its timeout is over, however long an exporter hangs; the flush itself goes on in the background.
- It says True only if every provider has finished a flush that began after the call, and none reported a failure; the
  same goes for what asked to be flushed as well.
- A provider has at most one thread, a daemon that lives while it flushes, however often a hanging one is asked.
- At the end of the interpreter no thread can be started: then nothing is flushed and the answer is False. What is left
  is sent by the providers' own exit hooks.
"""

from __future__ import annotations

import logging
import netrc  # noqa: F401 - `requests` leaves it to the first export, in a thread that a fork may find at it
import threading
import time
import weakref
from collections.abc import Iterable

from ragspan.telemetry.providers import Flushable

_ROUND_MILLIS = 30_000
"""What a provider is told, as by its SDK's default; the callers of `flush` stop waiting by themselves."""

_logger = logging.getLogger("ragspan")


# A dictionary of which only single operations are used: no lock, which a fork could leave held.
_beyond: dict[weakref.ref[Flushable], None] = {}


def flush_as_well(flushable: Flushable) -> None:
    """Have this flushed after every provider, whose SDK flushes no further than to the exporter's `export`."""
    _beyond[weakref.ref(flushable, lambda reference: _beyond.pop(reference, None))] = None


def _and_beyond(provider: Flushable) -> list[Flushable]:
    return [provider, *(one for reference in list(_beyond) if (one := reference()) is not None)]


class Flushing:
    """The flushes under way."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._next: dict[int, _Round | None] = {}
        """By the id of each provider that has a thread: the round that it will start next, if anybody asked for one."""

    def flush(self, providers: Iterable[Flushable], timeout: float) -> bool:
        """Flush all providers at the same time, waiting for at most `timeout` seconds."""
        deadline = time.monotonic() + timeout
        rounds = [self._ask(provider) for provider in providers]
        succeeded = [one.wait(deadline) for one in rounds]  # all of them, even if one has failed
        return all(succeeded)

    def _ask(self, provider: Flushable) -> _Round:
        key = id(provider)
        with self._lock:
            has_thread = key in self._next
            asked = self._next.get(key) or _Round()
            self._next[key] = asked
        if not has_thread:
            try:
                threading.Thread(target=self._serve, args=(provider,), name="ragspan-flush", daemon=True).start()
            except RuntimeError:
                with self._lock:
                    del self._next[key]
                asked.end(succeeded=False)
        return asked

    def _serve(self, provider: Flushable) -> None:
        while True:
            with self._lock:
                begun = self._next[id(provider)]
                if begun is None:
                    del self._next[id(provider)]
                    return
                self._next[id(provider)] = None
            succeeded = [_force_flush(one) for one in _and_beyond(provider)]
            begun.end(succeeded=all(succeeded))


class _Round:
    """One flush of one provider, for everybody who asked before it began."""

    def __init__(self) -> None:
        self._ended = threading.Event()
        self._succeeded = False

    def end(self, *, succeeded: bool) -> None:
        self._succeeded = succeeded
        self._ended.set()

    def wait(self, deadline: float) -> bool:
        remaining = min(max(deadline - time.monotonic(), 0), threading.TIMEOUT_MAX)
        return self._ended.wait(remaining) and self._succeeded


def _force_flush(provider: Flushable) -> bool:
    try:
        return provider.force_flush(_ROUND_MILLIS) is not False
    except Exception as error:  # noqa: BLE001 - whatever a provider raises, the flush has failed and no more
        _logger.warning("flushing %s failed: %s", type(provider).__name__, type(error).__name__)
        return False
