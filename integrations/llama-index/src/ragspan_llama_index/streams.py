"""Answers that are streamed: what is noted of one, and how it is watched while its user reads it.

Guarantees:

- The user's stream stays one of its kind, as lazy as it was: a token is asked for when the user asks for one, closing reaches
  the framework's stream at once, errors pass through as the same object.
- What watches holds the framework's stream and nothing else of the response; only the user holds what watches. A weak
  reference shows when it is dropped.
- Context variables are set and put back between two tokens, never across one.
- A stream may end in any thread, and in the collector: nothing here waits, takes a lock or raises.
"""

from __future__ import annotations

import contextlib
import time
import weakref
from collections.abc import AsyncGenerator, Callable, Generator
from contextvars import ContextVar
from typing import Any, TypeAlias

import wrapt

from ragspan.capturing import RequestLog, TokenStream
from ragspan.messages import NotedError, is_abandonment, note_error
from ragspan.safe_copy import fields_of, has_plain_dict, in_class, replace_field
from ragspan.safe_copy import text_of as plain_text
from ragspan_llama_index.answers import text_of, text_of_tokens
from ragspan_llama_index.classes import Role

Place: TypeAlias = tuple[RequestLog, str | None, Role | None, bool, Any]
"""Where a span belongs: the log of its request, the step that it is or is a part of, that step's role, whether the step is
inside a synthesis; and of a writer its stream, of a model's stream the tokens, of a synthesis whether it has not yet written
its nodes for the model, of a call the roles of the steps directly inside it that are not models."""


class StreamListener:
    """Follows the streams of one sink.

    Args:
        on_end: is called once for each stream, when it is over.
    """

    def __init__(self, on_end: Callable[[Stream], None]) -> None:
        self.on_end = on_end
        self.pulled: ContextVar[Stream | None] = ContextVar("ragspan_llama_index_pulled", default=None)
        """The stream whose next token the caller is making: many models are asked only then. Each sink has its own of them."""


class Stream(TokenStream):
    """An answer on its way: the tokens so far, and how it ended.

    Args:
        place: where the framework's spans belong that begin while a token is made.
        listener: hears of its end.
    """

    def __init__(self, place: Place, listener: StreamListener) -> None:
        super().__init__()
        self.place: Place | None = place
        self.is_watched = False
        self.over = False
        self.aborted = False
        self.noted: NotedError | None = None
        self.pulled = listener.pulled
        self._on_end: Callable[[Stream], None] | None = listener.on_end
        self._last: Any = None
        self._plain_kind: type | None = None  # of chunks whose fields are in their dictionary
        self._reference: weakref.ref[Any] | None = None
        self._reader: _Reader | None = None

    def text(self) -> str | None:
        return text_of_tokens(self.tokens)

    def follow(self, thing: Any) -> None:
        """End as aborted when this, which the user holds, is gone."""
        self._reference = weakref.ref(thing, lambda _: self.abandon())

    def belongs_to(self, thing: Any) -> bool:
        return self._reference is not None and self._reference() is thing

    def watch_reader(self, response: Any) -> None:
        """Note when the user stops reading what the framework reads for the user and for the memory."""
        self._reader = self._reader or _Reader(response, self._end_reading)

    def _end_reading(self, read: str | None) -> None:
        """The user stopped; what was read is given if there was more."""
        if self.noted is not None:
            return
        if read is not None:
            self.aborted, self.tokens, self._last = True, [read], None
        if read is not None or self.over:
            self._finish()

    def add(self, token: Any) -> None:
        """Add a token: a text, or of a structured answer an object."""
        if self.aborted:  # what the framework goes on to read, the user does not
            return
        if not self.tokens and self._last is None:
            self.first_ns = time.time_ns()
        text = token if type(token) is str else plain_text(token)
        if text is None:
            self._last = token  # each is more complete than the last
        else:
            self.tokens.append(text)

    def add_delta(self, chunk: Any) -> None:
        """Add the words in a model's chunk."""
        if type(chunk) is self._plain_kind:
            delta = chunk.__dict__.get("delta")
        else:
            delta = fields_of(chunk).get("delta")
            self._plain_kind = type(chunk) if has_plain_dict(type(chunk)) else None
        tokens = self.tokens
        if type(delta) is str and tokens and not self.aborted:  # mostly
            tokens.append(delta)
        else:
            self.add(plain_text(delta) or "")

    def abandon(self) -> None:
        """What the user held is gone, or closed; a chat engine's stream that nobody reads was read by the framework."""
        if self.over:
            self._finish()
        else:
            self.aborted = True
            self.complete()

    def fail(self, error: BaseException) -> None:
        """The error is not kept, for it would keep the request's frames alive."""
        if self.over:
            return
        if is_abandonment(error):
            self.aborted = True
        else:
            self.noted = note_error(error)
        self.complete()

    def complete(self) -> None:
        """All of it was read from the model; the user may still be reading it, or begin to."""
        self._settle()
        self.over = True
        if self._reader is None or self.aborted or self.noted is not None or self._reader.is_over:
            self._finish()

    def _finish(self) -> None:
        tell, self._on_end = self._on_end, None
        self.over = True
        if tell is not None:
            tell(self)
        self.place = None

    def _settle(self) -> None:
        """Keep the text of a structured answer, and nothing of its object."""
        last, self._last = self._last, None
        if last is not None and not self.tokens and (text := text_of(last)) is not None:
            self.tokens.append(text)

    def forget(self) -> None:
        """Report nothing any more; tokens still pass."""
        self._settle()
        self._on_end = self._reference = self.place = self._reader = None


def streams_of(log: RequestLog) -> list[Stream]:
    """The answers of the request that are streams, in the order in which they were handed over."""
    return [stream for stream in list(log.streams.values()) if isinstance(stream, Stream)]


def reader_or_maker(reader: Place | None, maker: Place) -> Place:
    """The place of a span that begins while a token is made: that of the token's maker, or that of its reader."""
    if reader is None or reader[0] is not maker[0]:
        return maker
    return maker if maker[2] == "synthesis" and not reader[3] else reader


# What stands in for the framework's streams


class _Proxy(wrapt.ObjectProxy):  # type: ignore[type-arg]  # generic for checkers only
    """A generator or iterator, and everything else that it is; `watching` takes the tokens out of it."""

    def __init__(self, source: Any, stream: Stream, watching: Any) -> None:
        super().__init__(source)
        self._self_stream = stream
        self._self_watching = watching

    def __repr__(self) -> str:
        return repr(self.__wrapped__)


class _Watched(_Proxy):
    """A stream that is read in a thread."""

    def __iter__(self) -> Any:
        return self._self_watching  # a proxy takes longer than the rest, for each token

    def __next__(self) -> Any:
        return next(self._self_watching)

    def close(self) -> None:
        self._self_stream.abandon()
        self._self_watching.close()
        self.__wrapped__.close()


class _WatchedAsync(_Proxy):
    """A stream that is read in an event loop."""

    def __aiter__(self) -> Any:
        return self._self_watching

    def __anext__(self) -> Any:
        return self._self_watching.__anext__()

    async def aclose(self) -> None:
        self._self_stream.abandon()
        await self._self_watching.aclose()
        await self.__wrapped__.aclose()


def _noting(source: Any, stream: Stream, note: Callable[[Any], None]) -> Generator[Any, Any, Any]:
    """The tokens of a stream, each given to `note`, a method of the stream."""
    advance: Callable[[], Any] = source.__next__
    tokens, are_texts, pulled = stream.tokens, note == stream.add, stream.pulled
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
        if are_texts and type(token) is str and tokens:  # mostly, and a call would take as long as the rest
            tokens.append(token)
        else:
            note(token)
        try:
            yield token
        except GeneratorExit:
            stream.abandon()
            with contextlib.suppress(AttributeError):  # a bare iterator
                source.close()
            raise


async def _noting_async(source: Any, stream: Stream, note: Callable[[Any], None]) -> AsyncGenerator[Any, Any]:
    advance: Callable[[], Any] = source.__anext__
    tokens, are_texts, pulled = stream.tokens, note == stream.add, stream.pulled
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
            try:  # noqa: SIM105  a context manager for each token takes three times as long
                pulled.reset(mark)
            except ValueError:  # thrown out of its wait in another context, by the loop's end
                pass
        if are_texts and type(token) is str and tokens:
            tokens.append(token)
        else:
            note(token)
        try:
            yield token
        except GeneratorExit:
            stream.abandon()
            with contextlib.suppress(AttributeError):
                await source.aclose()
            raise


def watched(source: Any, stream: Stream, note: Callable[[Any], None], *, is_async: bool) -> Any:
    """The same stream, giving its tokens to `note`, a method of `stream`; None if it cannot be watched.

    `is_async` is what its response says. The source does not show it: other instrumentations put in objects that look
    like both kinds.
    """
    if in_class(type(source), "__anext__" if is_async else "__next__") is None:
        return None
    if is_async:
        return _WatchedAsync(source, stream, _noting_async(source, stream, note))
    return _Watched(source, stream, _noting(source, stream, note))


def inside(source: Any) -> Any:
    """What takes the tokens out of a stream that is watched, bare or in another instrumentation's wrapper."""
    return getattr(source, "_self_watching", source)


# Who reads a chat engine's stream: the framework reads it from the model, into a queue, and the user reads the queue. The
# user's generator waits for the framework's writer when it ends, however it ends. So what stands in for the writer hears of it.

_WRITERS = ("write_response_to_history_thread", "awrite_response_to_history_task")
_QUEUES = (("queue", "queue"), ("aqueue", "_queue"))  # with the place of a queue's items


class _Reader:
    """The user, as the reader of a chat engine's stream.

    Args:
        response: what the engine gave.
        on_end: is called when the user stops reading, with what was read, or None where that is all.
    """

    def __init__(self, response: Any, on_end: Callable[[str | None], None]) -> None:
        self._response = weakref.ref(response)
        self._on_end = on_end
        writers = [(name, own) for name in _WRITERS if (own := fields_of(response).get(name)) is not None]
        self.is_over = not writers
        """The user has stopped, or it will not be seen."""
        for name, writer in writers:
            replace_field(response, name, _Writer(writer, self))

    def end(self) -> None:
        """The user's generator has come to its end, or is closed."""
        read, own = self._read(), fields_of(self._response())
        if self.is_over or not read:  # the program itself waits for the writer
            return
        self.is_over = True
        left = own.get("is_done") is not True or any(
            fields_of(own.get(name)).get(items) for name, items in _QUEUES if own.get(name) is not None
        )
        with contextlib.suppress(Exception):
            self._on_end(read if left else None)

    def _read(self) -> str:
        return plain_text(fields_of(self._response()).get("unformatted_response")) or ""


class _Writer(wrapt.ObjectProxy):  # type: ignore[type-arg]  # as above
    """The thread or task that reads the stream from the model."""

    def __init__(self, writer: Any, reader: _Reader) -> None:
        super().__init__(writer)
        self._self_reader = reader

    def join(self, timeout: float | None = None) -> None:
        self._self_reader.end()
        self.__wrapped__.join(timeout)

    def __await__(self) -> Generator[Any, None, Any]:
        self._self_reader.end()
        return (yield from self.__wrapped__.__await__())
