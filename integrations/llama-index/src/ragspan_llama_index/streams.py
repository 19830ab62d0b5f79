"""Answers that are handed over token by token: what is noted of one, and how it is watched while its user reads it.

Guarantees:

- The user's stream stays one of its kind, as lazy as it was: a token is asked for when the user asks for one, closing and
  throwing reach the framework's stream at once, errors pass through as the same object.
- What watches holds the framework's stream and nothing else of the response, and nobody holds it but the user. A weak
  reference tells when it was dropped.
- Context variables are set and put back between two tokens, never across one.
- A stream may end in any thread, and in the collector: nothing here waits, takes a lock or raises.
"""

from __future__ import annotations

import contextlib
import time
import weakref
from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from contextvars import ContextVar
from typing import Any, TypeAlias

import wrapt

from ragspan.capturing.log import RequestLog
from ragspan.records import is_abandonment
from ragspan.step_texts import NotedError, note_error
from ragspan_llama_index.answering import text_of_tokens
from ragspan_llama_index.roles import SYNTHESIS, Role

Place: TypeAlias = tuple[RequestLog, str, Role, bool, Any]
"""Where a span belongs: the log of its request, the step that it is or is a part of, that step's role, whether the step is
inside a synthesis; and of a writer its stream, of a model's stream the tokens, of a synthesis the nodes that it has not
written down."""

OnEnd: TypeAlias = "Callable[[Stream], None]"


class Stream:
    """An answer on its way: the tokens so far, and how it ended.

    Args:
        place: where the framework's spans belong that begin while a token is made.
        on_end: is told once, when the stream is over.
    """

    def __init__(self, place: Place, on_end: OnEnd) -> None:
        self.place: Place | None = place
        self.tokens: list[Any] = []
        self.is_watched = False
        self.over = False
        self.aborted = False
        self.error: str | None = None
        self.noted: NotedError | None = None
        self.first_token_ns: int | None = None
        self._on_end: OnEnd | None = on_end
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


pulled: ContextVar[Stream | None] = ContextVar("ragspan_llama_index_pulled", default=None)
"""The stream of which a token is being made by the caller: models are often not asked before."""


def reader_or_maker(reader: Place | None, maker: Place) -> Place:
    """Where something belongs that begins while a token is made: to what makes the token, or to who reads it."""
    if reader is None or reader[0] is not maker[0]:
        return maker
    return maker if maker[2] == SYNTHESIS and not reader[3] else reader


_MAX_LAYERS = 10


def _plain(token: Any) -> Any:
    return token


def watched(source: Any, stream: Stream, read: Callable[[Any], Any] = _plain, *, is_async: bool) -> Any:
    """The same stream, noting its tokens; None if it is none that can be watched.

    Args:
        source: what the framework hands to its user.
        stream: where to note.
        read: takes the text out of a token.
        is_async: what its response says. It cannot be told from the source: other instrumentations put in objects that
            look like both kinds.
    """
    if isinstance(layers_of(source)[-1], AsyncGenerator if is_async else Generator):
        return _watched_async(source, stream, read) if is_async else _watched(source, stream, read)
    if hasattr(type(source), "__anext__" if is_async else "__next__"):
        return _WatchedAsyncIterator(source, stream, read) if is_async else _WatchedIterator(source, stream, read)
    return None


def layers_of(source: Any) -> list[Any]:
    """A stream, and what other instrumentations wrapped in it, the innermost last."""
    layers = [source]
    while isinstance(layers[-1], wrapt.ObjectProxy) and len(layers) < _MAX_LAYERS:
        layers.append(layers[-1].__wrapped__)
    return layers


def _watched(source: Any, stream: Stream, read: Callable[[Any], Any]) -> Generator[Any, Any, Any]:
    advance: Callable[[], Any] = source.__next__
    while True:
        mark = pulled.set(stream)
        try:
            token = advance()
        except StopIteration as end:
            stream.complete()
            return end.value
        except BaseException as error:
            stream.fail(error)
            raise
        finally:
            pulled.reset(mark)
        stream.add(read(token))
        try:
            sent = yield token
        except GeneratorExit:
            stream.abandon()
            source.close()
            raise
        except BaseException as error:  # noqa: BLE001  it is the framework's stream that it is thrown into
            advance = _call(source.throw, error)
        else:
            advance = source.__next__ if sent is None else _call(source.send, sent)


async def _watched_async(source: Any, stream: Stream, read: Callable[[Any], Any]) -> AsyncGenerator[Any, Any]:
    advance: Callable[[], Any] = source.__anext__
    while True:
        mark = pulled.set(stream)
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
                pulled.reset(mark)
        stream.add(read(token))
        try:
            sent = yield token
        except GeneratorExit:
            stream.abandon()
            await source.aclose()
            raise
        except BaseException as error:  # noqa: BLE001  as above
            advance = _call(source.athrow, error)
        else:
            advance = source.__anext__ if sent is None else _call(source.asend, sent)


def _call(function: Callable[[Any], Any], argument: Any) -> Callable[[], Any]:
    return lambda: function(argument)


class _WatchedIterator(wrapt.ObjectProxy):  # type: ignore[type-arg]  # generic for checkers only
    """For a program's own iterator, which may have more to it than its tokens."""

    def __init__(self, source: Any, stream: Stream, read: Callable[[Any], Any]) -> None:
        super().__init__(source)
        self._self_stream = stream
        self._self_read = read

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        stream = self._self_stream
        mark = pulled.set(stream)
        try:
            token = next(self.__wrapped__)
        except StopIteration:
            stream.complete()
            raise
        except BaseException as error:
            stream.fail(error)
            raise
        finally:
            pulled.reset(mark)
        stream.add(self._self_read(token))
        return token

    def close(self) -> None:
        self._self_stream.abandon()
        self.__wrapped__.close()


class _WatchedAsyncIterator(wrapt.ObjectProxy):  # type: ignore[type-arg]  # as above
    """The same for an asynchronous one."""

    def __init__(self, source: Any, stream: Stream, read: Callable[[Any], Any]) -> None:
        super().__init__(source)
        self._self_stream = stream
        self._self_read = read

    def __aiter__(self) -> Any:
        return self

    async def __anext__(self) -> Any:
        stream = self._self_stream
        mark = pulled.set(stream)
        try:
            token = await self.__wrapped__.__anext__()
        except StopAsyncIteration:
            stream.complete()
            raise
        except BaseException as error:
            stream.fail(error)
            raise
        finally:
            with contextlib.suppress(ValueError):  # as above
                pulled.reset(mark)
        stream.add(self._self_read(token))
        return token

    async def aclose(self) -> None:
        self._self_stream.abandon()
        await self.__wrapped__.aclose()
