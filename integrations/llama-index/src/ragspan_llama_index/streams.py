"""Answers that are streamed: what is noted of one, and how it is watched while its user reads it.

The user's stream stays a generator, as lazy as it was. What watches holds the framework's stream and nothing else of the response;
a weak reference shows when the user drops it. A stream may end in any thread, and in the collector: nothing here waits, takes a
lock or raises. Context variables are set and put back between two tokens, never across one.
"""

from __future__ import annotations

import contextlib
import time
import weakref
from collections.abc import AsyncGenerator, Callable, Generator
from contextvars import ContextVar
from typing import Any, TypeAlias

from ragspan.capturing import RequestLog, TokenStream
from ragspan.messages import ErrorReport, is_abandonment, note_error
from ragspan.safe_copy import Snapshot, fields_of, has_plain_dict, in_class, is_list, items_of, replace_field
from ragspan.safe_copy import text_of as plain_text
from ragspan_llama_index.answers import READERS, answer_in, kind_of, output_of, text_of, text_of_tokens
from ragspan_llama_index.classes import CHAT_STREAM, GENERATOR, STREAMS, Role

Place: TypeAlias = tuple[RequestLog, str | None, Role | None, bool, Any]
"""Where a span belongs: the log of its request, the step that it is or is a part of, that step's role, whether the step is
inside a synthesis; and of a writer its stream, of a model's stream the tokens, of a synthesis whether it has not yet written
its nodes for the model, of a call the roles of the steps directly inside it that are not models."""


StreamListener: TypeAlias = "tuple[Callable[[Stream], None], ContextVar[Stream | None]]"
"""Of one sink: what is called once for each stream, when it is over; and the stream whose next token the caller is making, for
many models are asked only then."""


class Stream(TokenStream):
    """An answer on its way: the tokens so far, and how it ended.

    Args:
        place: where the framework's spans belong that begin while a token is made.
        listener: hears of its end.
    """

    def __init__(self, place: Place, listener: StreamListener) -> None:
        super().__init__()
        self.place: Place | None = place
        self.is_watched = True
        self.over = False
        self.aborted = False
        self.noted: ErrorReport | None = None
        self._on_end: Callable[[Stream], None] | None = listener[0]
        self.pulled = listener[1]
        self._last: Any = None
        self._plain_kind: type | None = None  # of chunks whose fields are in their dictionary
        self._reference: weakref.ref[Any] | None = None

    def text(self) -> str | None:
        return text_of_tokens(self.tokens)

    def belongs_to(self, thing: Any) -> bool:
        return self._reference is not None and self._reference() is thing

    def follow(self, thing: Any) -> Stream:
        """End as aborted when this, which the user holds, is gone."""
        self._reference = weakref.ref(thing, lambda _: self.abandon())
        if self.place is not None:
            self.place[0].streams[id(self)] = self
        return self

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
        """What the user held is gone, or closed."""
        if not self.over:
            self.aborted = True
            self.complete()

    def fail(self, error: BaseException) -> None:
        """The error is not kept, for it would keep the request's frames alive."""
        if not self.over:
            if is_abandonment(error):
                self.aborted = True
            else:
                self.noted = note_error(error)
            self.complete()

    def complete(self) -> None:
        """All of it was read."""
        self.over = True
        tell = self._on_end
        self._settle()
        self._on_end = None
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
        self._on_end = self._reference = self.place = None


def streams_of(log: RequestLog) -> list[Stream]:
    """The answers of the request that are streams, in the order in which they were handed over."""
    return [stream for stream in list(log.streams.values()) if isinstance(stream, Stream)]


# Results


def output_or_stream(place: Place, result: Any, listener: StreamListener) -> Snapshot:
    """What a call or a synthesis returned: a `Stream`, if the answer is one."""
    log, kind = place[0], kind_of(result)
    if kind in READERS:
        text = READERS[kind](fields_of(result))
        if text is not None:
            log.texts[id(text)] = text
        return text
    part = result if kind is not None else answer_in(result)
    kind = kind_of(part)
    if kind in STREAMS:
        own = fields_of(part)
        source, text = own.get("response_gen"), plain_text(own.get("response_txt"))
        stream = _known(log, source)
        if stream is not None or text is not None:
            return stream or log.count(text or "")  # the framework has read it by itself
        stream = Stream(place, listener)
        watching = _watched(source, stream, stream.add, is_async=kind == "AsyncStreamingResponse")
        if watching is None:  # a list, say: it is all there
            return text_of_tokens(items_of(source) or ()) if is_list(source) else None
        return stream.follow(watching) if replace_field(part, "response_gen", watching) else None
    if kind == CHAT_STREAM:  # its user reads the model's stream where no writer does
        return watch_chat(place, part, listener, only_known=fields_of(part).get("is_writing_to_memory") is not False)
    if kind == GENERATOR:  # the framework's own, or fed by one; a generator of the program's own is not watched
        return _known(log, part) or next((one for one in reversed(streams_of(log)) if not one.over), None)
    return output_of(part, log)


def watch_chat(place: Place, response: Any, listener: StreamListener, *, only_known: bool = False) -> Stream:
    """A chat engine's stream; it is about to be read, for the user and for the memory, unless `only_known`."""
    stream = _known(place[0], response)
    if stream is None:
        stream = Stream(place, listener).follow(response)
        stream.is_watched = False
    if not stream.is_watched and not only_known:
        stream.is_watched = True
        for name, is_async in (("chat_stream", False), ("achat_stream", True)):
            watching = _watched(fields_of(response).get(name), stream, stream.add_delta, is_async=is_async)
            if watching is not None:
                replace_field(response, name, watching)
    return stream


def _known(log: RequestLog, source: Any) -> Stream | None:
    """The stream that is watched already, bare or in another instrumentation's wrapper."""
    bare = getattr(source, "__wrapped__", source)
    return next((known for known in streams_of(log) if known.belongs_to(bare)), None)


# What stands in for the framework's streams


def _watched(source: Any, stream: Stream, note: Callable[[Any], None], *, is_async: bool) -> Any:
    """A generator of the same tokens that gives each to `note`, a method of `stream`; None if it cannot be watched.

    `is_async` is what its response says. The source does not show it: other instrumentations put in objects that look
    like both kinds.
    """
    if in_class(type(source), "__anext__" if is_async else "__next__") is None:
        return None
    return (_noting_async if is_async else _noting)(source, stream, note)


def _noting(source: Any, stream: Stream, note: Callable[[Any], None]) -> Generator[Any, Any, Any]:
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
