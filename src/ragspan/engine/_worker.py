"""The thread that scores: one daemon thread with one event loop, started by the first submit.

Guarantees:
- Nothing that a record, a metric or an emitter raises ends the thread. If it dies all the same, the records that it had
  in work are counted as dropped, and the next submit starts another.
- At most `concurrency` records are in work. Each is a task; the queue is read when a task ends or `call` is told to.
- Everything runs in a context of the worker's own: no span or variable of a request reaches a metric.
- The loop is of a kind of our own choosing, whatever the application's policy would make. The loop that a fork inherits
  is left alone: its selector is shared with the parent, so closing it would make the parent's loop deaf.
- `stop` waits no longer than it is told.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
from collections.abc import Callable, Mapping
from typing import Any

from ragspan.engine._backlog import Backlog
from ragspan.engine._deadline import Deadline
from ragspan.engine._queue import Item
from ragspan.engine._scoring import Scoring
from ragspan.engine._threads import DaemonThreads
from ragspan.engine._throttled_log import ThrottledLog

_CLEAN_UP = 0.5  # seconds that cancelled tasks have to let go of what they hold
_RESTART_PAUSE = 1.0  # seconds between attempts to start a worker where that fails
_IO_THREADS = 32  # for what judges do in threads, such as resolving host names


class Worker:
    """Takes items from a backlog and has them scored."""

    def __init__(self, backlog: Backlog, scoring: Scoring, *, concurrency: int, name: str, log: ThrottledLog) -> None:
        self._backlog = backlog
        self._scoring = scoring
        self._concurrency = concurrency
        self._name = name
        self._log = log
        self._context = contextvars.Context()
        self._loop: _WorkerLoop | None = None
        self._thread: threading.Thread | None = None
        self._tasks: dict[asyncio.Task[None], Item] = {}
        self._stopping = False
        self._last_start: Deadline | None = None
        self._drops_told: object = None
