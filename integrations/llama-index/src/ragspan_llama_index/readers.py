"""Who reads a chat engine's stream: the framework reads it from the model, into a queue, and the user reads the queue.

The user's generator waits for the framework's writer when it ends, however it ends. So what stands in for the writer, a thread
or a task, hears of that end. Nothing here waits by itself, takes a lock or raises.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Generator
from typing import Any

import wrapt

from ragspan.safe_copy import fields_of, replace_field
from ragspan.safe_copy import text_of as plain_text

_WRITERS = ("write_response_to_history_thread", "awrite_response_to_history_task")
_QUEUES = (("queue", "queue"), ("aqueue", "_queue"))  # with the place of a queue's items


class Reader:
    """The user, as the reader of a chat engine's stream.

    Args:
        response: what the engine gave.
        on_end: is called when the user stops reading, with what was read, or None where that is all.
    """

    def __init__(self, response: Any, on_end: Callable[[str | None], None]) -> None:
        self._response = weakref.ref(response)
        self._on_end = on_end
        self._is_over = False
        for name in _WRITERS:
            writer = fields_of(response).get(name)
            if writer is not None:
                replace_field(response, name, _Writer(writer, self))

    def is_reading(self) -> bool:
        """Whether the user has begun to read and not stopped."""
        return not self._is_over and bool(self._read())

    def end(self) -> None:
        """The user's generator has come to its end, or is closed."""
        read, own = self._read(), fields_of(self._response())
        if self._is_over or not read:  # the program itself waits for the writer
            return
        self._is_over = True
        left = own.get("is_done") is not True or any(
            fields_of(own.get(name)).get(items) for name, items in _QUEUES if own.get(name) is not None
        )
        with contextlib.suppress(Exception):
            self._on_end(read if left else None)

    def _read(self) -> str:
        response = self._response()
        return "" if response is None else plain_text(fields_of(response).get("unformatted_response")) or ""


class _Writer(wrapt.ObjectProxy):  # type: ignore[type-arg]  # generic for checkers only
    """The thread or task that reads the stream from the model."""

    def __init__(self, writer: Any, reader: Reader) -> None:
        super().__init__(writer)
        self._self_reader = reader

    def join(self, timeout: float | None = None) -> None:
        self._self_reader.end()
        self.__wrapped__.join(timeout)

    def __await__(self) -> Generator[Any, None, Any]:
        self._self_reader.end()
        return (yield from self.__wrapped__.__await__())
