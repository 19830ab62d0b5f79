"""Watches the answers that are handed over token by token.

Guarantees:

- The user's stream stays a generator of its kind, as lazy as it was: a token is asked for when the user asks for one,
  closing and throwing reach the framework's generator at once, errors pass through as the same object.
- The watching generator holds the framework's one and nothing else of the response. Nobody holds the watching generator
  but the user: it is told by a weak reference when a stream was dropped, wherever the collector happens to run.
- Nothing here waits, takes a lock or raises; context variables are set and put back between two yields.
"""

from __future__ import annotations

import contextlib
import time
import weakref
from collections.abc import AsyncGenerator, Callable, Generator
from contextvars import ContextVar
from typing import Any

from ragspan.records import is_abandonment
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
        self.over = False
        self.aborted = False
        self.error: str | None = None
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


_pulled: ContextVar[Stream | None] = ContextVar("ragspan_llama_index_pulled", default=None)


def pulled_stream() -> Stream | None:
    """The stream of which a token is being made by the caller: models are often not asked before."""
    return _pulled.get()


def _plain(token: Any) -> Any:
    return token


def watched(source: Any, stream: Stream, read: Callable[[Any], Any] = _plain) -> Generator[Any, Any, Any]:
    """The same stream, noting its tokens; `read` takes the text out of one."""
    advance: Callable[[], Any] = source.__next__
    while True:
        mark = _pulled.set(stream)
        try:
            token = advance()
        except StopIteration as end:
            stream.complete()
            return end.value
        except BaseException as error:
            stream.fail(error)
            raise
        finally:
            _pulled.reset(mark)
        stream.add(read(token))
        try:
            sent = yield token
        except GeneratorExit:
            stream.abandon()
            if hasattr(source, "close"):
                source.close()
            raise
        except BaseException as error:
            if not hasattr(source, "throw"):
                stream.fail(error)
                raise
            advance = _throwing(source, error)
        else:
            advance = source.__next__ if sent is None else _sending(source, sent)


async def watched_async(source: Any, stream: Stream, read: Callable[[Any], Any] = _plain) -> AsyncGenerator[Any, Any]:
    """The same for an asynchronous stream."""
    advance: Callable[[], Any] = source.__anext__
    while True:
        mark = _pulled.set(stream)
        try:
            token = await advance()
        except StopAsyncIteration:
            stream.complete()
            return
        except BaseException as error:
            stream.fail(error)
            raise
        finally:
            with contextlib.suppress(ValueError):  # thrown out of its wait in another context, by the loop's end
                _pulled.reset(mark)
        stream.add(read(token))
        try:
            sent = yield token
        except GeneratorExit:
            stream.abandon()
            if hasattr(source, "aclose"):
                await source.aclose()
            raise
        except BaseException as error:
            if not hasattr(source, "athrow"):
                stream.fail(error)
                raise
            advance = _throwing_async(source, error)
        else:
            advance = source.__anext__ if sent is None else _sending_async(source, sent)


def _throwing(source: Any, error: BaseException) -> Callable[[], Any]:
    return lambda: source.throw(error)


def _sending(source: Any, value: Any) -> Callable[[], Any]:
    return lambda: source.send(value)


def _throwing_async(source: Any, error: BaseException) -> Callable[[], Any]:
    return lambda: source.athrow(error)


def _sending_async(source: Any, value: Any) -> Callable[[], Any]:
    return lambda: source.asend(value)
