"""What is noted of an answer that is handed over token by token.

A stream may end in any thread, and in the collector: nothing here waits, takes a lock or raises. Of what the user holds
there is but a weak reference, which tells when it was dropped.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable
from typing import Any

from ragspan.records import is_abandonment
from ragspan.step_texts import NotedError, note_error
from ragspan_llama_index.answering import text_of_tokens


class Stream:
    """An answer on its way: the tokens so far, and how it ended.

    Args:
        place: where the framework's spans belong that begin while a token is made.
        on_end: is told once, when the stream is over.
    """

    def __init__(self, place: Any, on_end: Callable[[Stream], None]) -> None:
        self.place: Any = place
        self.tokens: list[Any] = []
        self.is_watched = False
        self.over = False
        self.aborted = False
        self.error: str | None = None
        self.noted: NotedError | None = None
        self.first_token_ns: int | None = None
        self._on_end: Callable[[Stream], None] | None = on_end
        self._reference: weakref.ref[Any] | None = None

    def text(self) -> str | None:
        return text_of_tokens(self.tokens)

    def follow(self, thing: Any) -> None:
        """End as aborted when this, which the user holds, is gone."""
        self._reference = weakref.ref(thing, lambda _: self.abandon())

    def belongs_to(self, thing: Any) -> bool:
        return self._reference is not None and self._reference() is thing

    def add(self, token: Any) -> None:
        if not self.tokens:
            self.first_token_ns = time.time_ns()
        self.tokens.append(token)

    def complete(self) -> None:
        self._end()

    def abandon(self) -> None:
        if not self.over:
            self.aborted = True
            self._end()

    def fail(self, error: BaseException) -> None:
        """The error is not kept, for it would keep the request's frames alive."""
        if self.over:
            return
        if is_abandonment(error):
            self.aborted = True
        else:
            self.error = type(error).__name__
            self.noted = note_error(error)
        self._end()

    def forget(self) -> None:
        """Stop telling; tokens still pass."""
        self._on_end = self._reference = self.place = None

    def _end(self) -> None:
        tell, self._on_end = self._on_end, None
        self.over = True
        if tell is not None:
            tell(self)
        self.place = None
