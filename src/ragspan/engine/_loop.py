"""The worker's event loop: one that does not hold up the end of the process and quotes no texts in logs.

It is always of this kind, whatever the application's event loop policy would make.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from ragspan.engine._boundary import attempt
from ragspan.engine._threads import DaemonThreads

_CLEAN_UP = 0.5  # seconds that cancelled tasks have to let go of what they hold


class WorkerLoop(asyncio.SelectorEventLoop):
    """An event loop that reports trouble itself: the log lines of asyncio show arguments and messages.

    Args:
        threads: for what judges do in threads, such as resolving host names.
        on_error: told of errors in callbacks, and of tasks whose error nobody asked for.
    """

    def __init__(self, *, threads: DaemonThreads, on_error: Callable[[BaseException], None]) -> None:
        super().__init__()
        self._on_error = on_error
        self.set_exception_handler(self._report)
        self.set_default_executor(threads)

    def wind_down(self) -> None:
        """Cancel what is left, give it a moment to end, and close the loop, come what may."""
        left = asyncio.all_tasks(self)

        def ended(task: asyncio.Task[Any]) -> None:
            left.discard(task)
            if not left:
                self.stop()

        for task in tuple(left):
            task.add_done_callback(ended)
            task.cancel()
        # Judges keep their connections in asynchronous generators, which are closed by this and by nothing else.
        closing = self.create_task(self.shutdown_asyncgens())
        left.add(closing)
        closing.add_done_callback(ended)
        self.call_later(_CLEAN_UP, self.stop)
        attempt(self.run_forever)
        attempt(self.close)

    def _report(self, _: asyncio.AbstractEventLoop, context: Mapping[str, Any]) -> None:
        error = context.get("exception")
        if isinstance(error, BaseException):
            self._on_error(error)
