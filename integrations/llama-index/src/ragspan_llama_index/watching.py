"""Watches a stream while its user reads it.

Guarantees:

- The user's stream stays one of its kind, as lazy as it was: a token is asked for when the user asks for one, closing and
  throwing reach the framework's stream at once, errors pass through as the same object.
- What watches holds the framework's stream and nothing else of the response, and nobody holds it but the user.
- Context variables are set and put back between two tokens, never across one.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from contextvars import ContextVar
from typing import Any

import wrapt

from ragspan_llama_index.streams import Stream

pulled: ContextVar[Stream | None] = ContextVar("ragspan_llama_index_pulled", default=None)
"""The stream of which a token is being made by the caller: models are often not asked before."""


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
