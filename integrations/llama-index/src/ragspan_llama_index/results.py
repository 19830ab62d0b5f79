"""What is noted of the result of a call or a synthesis: its answer, whole or as a stream that is watched."""

from __future__ import annotations

from typing import Any

from ragspan.capturing import Snapshot
from ragspan.safe_copy import fields_of, in_class, is_list, items_of, replace_field
from ragspan.safe_copy import text_of as plain_text
from ragspan_llama_index.answers import READERS, answer_in, hand_out, kind_of, output_of, text_of_tokens
from ragspan_llama_index.classes import CHAT_STREAM, GENERATOR, STREAMS
from ragspan_llama_index.streams import OnEnd, Place, Stream, inside, streams_of, watched


def output_or_stream(place: Place, result: Any, on_end: OnEnd) -> Snapshot:
    """What a call or a synthesis returned: a `Stream`, if the answer is one."""
    kind = kind_of(result)
    if kind in READERS:
        text = READERS[kind](result)
        return text if text is None else place[0].count(text)
    part = result if kind is not None else answer_in(result)
    kind = kind_of(part)
    if kind in STREAMS:
        return _watch(place, part, on_end, is_async=kind == "AsyncStreamingResponse")
    if kind == CHAT_STREAM:
        if fields_of(part).get("is_writing_to_memory") is not False:
            return _chat_stream(place, part, on_end)
        return watch_chat(place, part, on_end)  # its user reads the model's stream, and no writer does
    if kind == GENERATOR:
        return _watch_bare(place, result, part, on_end)
    return output_of(part, place[0])


def watch_chat(place: Place, response: Any, on_end: OnEnd) -> Stream:
    """A chat engine's stream is about to be read, for the user and for the memory."""
    stream = _chat_stream(place, response, on_end)
    if not stream.is_watched:
        stream.is_watched = True
        stream.watch_reader(response)
        for name, is_async in (("chat_stream", False), ("achat_stream", True)):
            watching = watched(fields_of(response).get(name), stream, stream.add_delta, is_async=is_async)
            if watching is not None:
                replace_field(response, name, watching)
    return stream


def _watch(place: Place, response: Any, on_end: OnEnd, *, is_async: bool) -> Stream | str | None:
    own = fields_of(response)
    source, text = own.get("response_gen"), plain_text(own.get("response_txt"))
    stream = _known(place, source)
    if stream is not None:
        return stream
    if text is not None:
        return place[0].count(text)  # the framework has read it by itself
    stream = Stream(place, on_end)
    watching = watched(source, stream, stream.add, is_async=is_async)
    if watching is None:  # a list, say: it is all there
        return text_of_tokens(items_of(source) or ()) if is_list(source) else None
    return _followed(place, stream, watching) if replace_field(response, "response_gen", watching) else None


def _watch_bare(place: Place, result: Any, source: Any, on_end: OnEnd) -> Stream | None:
    """Watch a generator that is the answer in a result, or the framework's stream that feeds it, if there is one."""
    stream = _known(place, source)
    if stream is None and result is not source:
        made = Stream(place, on_end)
        is_async = in_class(type(source), "__anext__") is not None
        watching = watched(source, made, made.add_text_or_delta, is_async=is_async)
        if watching is not None and hand_out(result, source, watching):
            stream = _followed(place, made, watching)
    return stream or next((known for known in reversed(streams_of(place[0])) if not known.over), None)


def _chat_stream(place: Place, response: Any, on_end: OnEnd) -> Stream:
    known = _known(place, response)
    if known is None:
        known = _followed(place, Stream(place, on_end), response)
        known.is_watched = False
    return known


def _followed(place: Place, stream: Stream, thing: Any) -> Stream:
    stream.is_watched = True
    stream.follow(inside(thing))
    place[0].streams[id(stream)] = stream
    return stream


def _known(place: Place, source: Any) -> Stream | None:
    """The stream that is watched already."""
    streams = streams_of(place[0]) if place[0].streams else ()
    return next((known for known in streams if known.belongs_to(inside(source))), None)
