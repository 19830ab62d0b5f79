"""The worker's event loop: one that does not hold up the end of the process, and that a fork leaves alone.

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
    """An event loop whose trouble is reported by the type of the error alone: asyncio's own log lines may quote texts.

    Args:
        threads: for what judges do in threads, such as resolving host names.
        on_error: told of errors in callbacks, and of tasks whose error nobody asked for.
    """

    def __init__(self, *, threads: DaemonThreads, on_error: Callable[[BaseException], None]) -> None:
        super().__init__()
        self._on_error = on_error
        self._is_given_up = False
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
        if left:
            self.call_later(_CLEAN_UP, self.stop)
            attempt(self.run_forever)
        _, error = attempt(self.close)
        self._is_given_up = error is not None

    def disown(self) -> None:
        """In the child of a fork: its selector is shared with the parent, whose loop would go deaf if this were closed."""
        self._is_given_up = True

    def _report(self, _: asyncio.AbstractEventLoop, context: Mapping[str, Any]) -> None:
        error = context.get("exception")
        if isinstance(error, BaseException) and not self._is_given_up:
            self._on_error(error)

    def __del__(self) -> None:  # of the base: warns of a loop that is not closed, and closes it
        if not self._is_given_up:
            super().__del__()
