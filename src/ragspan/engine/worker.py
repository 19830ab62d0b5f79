"""What a worker is given: what to do with each item, how much to take, and its event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from ragspan.arguments import SECONDS, TEXT, WHOLE
from ragspan.engine.record_queue import Item
from ragspan.engine.stats import Dropped
from ragspan.engine.threads import DaemonThreads, Deadline, call_guarded
from ragspan.outcomes import ScoredRecord

_CLEAN_UP = 0.5  # seconds that cancelled tasks have to let go of what they hold


class Work(Protocol):
    """What is done with each item: it is scored, or sent to where that is done.

    `process` returns what becomes of an item; None if it was worked on and nobody asks for the result, or if it is out already.
    `flush` sends what is done, and returns True if all of it was sent in time; `stop` does so at the shutdown, and what ends
    from there on does not count. `worker_ended` is called when the event loop has stopped: its tasks are cancelled next.
    """

    async def process(self, item: Item) -> ScoredRecord | Dropped | None: ...
    def flush(self, deadline: Deadline) -> bool: ...
    def stop(self, deadline: Deadline) -> None: ...
    def worker_ended(self) -> None: ...


@dataclass(frozen=True, kw_only=True)
class ProcessorOptions:
    """How much a processor takes, and what it is called. A `ConfigurationError` names a wrong argument."""

    queue_size: int
    queue_bytes: int
    concurrency: int
    exit_timeout: float
    name: str

    def __post_init__(self) -> None:
        WHOLE.check_fields(self, "queue_size", "queue_bytes", "concurrency")
        SECONDS.check_fields(self, "exit_timeout")
        TEXT.check_fields(self, "name")


class WorkerLoop(asyncio.SelectorEventLoop):
    """An event loop that reports trouble to `on_error`: the log lines of asyncio show arguments and messages.

    It is always of this kind, whatever the application's policy would make. What judges do in threads is done in `threads`.
    """

    def __init__(self, threads: DaemonThreads, on_error: Callable[[BaseException], None]) -> None:
        try:
            super().__init__()
        except BaseException:  # no descriptors are left, say: what is half made would print a traceback when it goes
            self._closed = True
            raise

        def report(_: asyncio.AbstractEventLoop, context: Mapping[str, Any]) -> None:
            error = context.get("exception")
            if isinstance(error, BaseException):
                on_error(error)

        self.set_exception_handler(report)
        self.set_default_executor(threads)

    def wind_down(self) -> None:
        """Cancel what is left, give it a moment to end, and close the loop, come what may."""
        tasks = asyncio.all_tasks(self)
        for task in tasks:
            task.cancel()
        # Judges keep their connections in asynchronous generators, which are closed by this and by nothing else.
        tasks.add(self.create_task(self.shutdown_asyncgens()))
        call_guarded(self.run_until_complete, self.create_task(asyncio.wait(tasks, timeout=_CLEAN_UP)))
        call_guarded(self.close)
