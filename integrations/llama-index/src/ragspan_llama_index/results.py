"""What is noted of the result of a call or a synthesis: its answer, whole or as a stream that is watched."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ragspan.capturing import OPAQUE, RequestLog, Snapshot
from ragspan.safe_copy import (
    dataclass_fields,
    fields_of,
    is_dict,
    is_list,
    items_of,
    own_of,
    replace_field,
    text_keyed,
)
from ragspan.safe_copy import text_of as plain_text
from ragspan_llama_index.answers import DATA, READERS, event_fields, kind_of, private_of, text_of, text_of_tokens
from ragspan_llama_index.classes import CHAT_STREAM, GENERATOR, STREAMS, has_base
from ragspan_llama_index.nodes import are_nodes
from ragspan_llama_index.streams import Place, Stream, StreamListener, inside, streams_of, watched

_STREAMING = frozenset({*STREAMS, GENERATOR})


def output_or_stream(place: Place, result: Any, listener: StreamListener) -> Snapshot:
    """What a call or a synthesis returned: a `Stream`, if the answer is one."""
    kind = kind_of(result)
    if kind in READERS:
        text = READERS[kind](result)
        return text if text is None else place[0].count(text)
    part = result if kind is not None else _answer_in(result)
    kind = kind_of(part)
    if kind in STREAMS:
        return _watch(place, part, listener, is_async=kind == "AsyncStreamingResponse")
    if kind == CHAT_STREAM:
        if fields_of(part).get("is_writing_to_memory") is not False:
            return _chat_stream(place, part, listener)
        return watch_chat(place, part, listener)  # its user reads the model's stream, and no writer does
    if kind == GENERATOR:  # the framework's own, or fed by one; a generator of the program's own is not watched
        return _known(place, part) or next((one for one in reversed(streams_of(place[0])) if not one.over), None)
    return _output_of(part, place[0])


# The answer in a result


def _answer_in(result: Any) -> Any:
    """The part of a result that is the answer, if its class shows which one: a workflow's result, or a stream among fields."""
    if kind_of(result) is not None or type(result) is str:
        return result
    inner = private_of(result).get("_result") if has_base(type(result), "StopEvent") else None
    if inner is not None and inner is not result:
        return _answer_in(inner)
    streams = [value for value in (_fields_in(result) or {}).values() if kind_of(value) in _STREAMING]
    return streams[0] if len(streams) == 1 else result


def _fields_in(result: Any) -> Mapping[str, Any] | None:
    """The parts of a result by their names, if it is a dictionary, an event, or a dataclass of the program's own."""
    if is_dict(result):
        return text_keyed(result)
    if has_base(type(result), "StopEvent"):
        return event_fields(result)
    module = plain_text(own_of(type(result), "__module__")) or ""
    is_own = dataclass_fields(type(result)) is not None and not module.startswith("llama_index.")
    return fields_of(result) if is_own else None


def _output_of(result: Any, log: RequestLog) -> Snapshot:
    """What a call returned: its text, or its parts, of which a later rule chooses the answer."""
    fields = None if kind_of(result) is not None or type(result) is str else _fields_in(result)
    if fields is not None:
        return {name: OPAQUE if are_nodes(value) else _part_of(value, log) for name, value in fields.items()}
    if is_list(result):
        return None if are_nodes(result) else DATA.take(result, log)
    text = text_of(result)
    return text if text is None else log.count(text)


def _part_of(value: Any, log: RequestLog) -> Snapshot:
    is_response = kind_of(value) in READERS and kind_of(value) not in {"ChatMessage", "ToolOutput"}
    return DATA.take(text_of(value) if is_response else value, log)


# Streams


def watch_chat(place: Place, response: Any, listener: StreamListener) -> Stream:
    """A chat engine's stream is about to be read, for the user and for the memory."""
    stream = _chat_stream(place, response, listener)
    if not stream.is_watched:
        stream.is_watched = True
        stream.watch_reader(response)
        for name, is_async in (("chat_stream", False), ("achat_stream", True)):
            watching = watched(fields_of(response).get(name), stream, stream.add_delta, is_async=is_async)
            if watching is not None:
                replace_field(response, name, watching)
    return stream


def _watch(place: Place, response: Any, listener: StreamListener, *, is_async: bool) -> Stream | str | None:
    own = fields_of(response)
    source, text = own.get("response_gen"), plain_text(own.get("response_txt"))
    stream = _known(place, source)
    if stream is not None:
        return stream
    if text is not None:
        return place[0].count(text)  # the framework has read it by itself
    stream = Stream(place, listener)
    watching = watched(source, stream, stream.add, is_async=is_async)
    if watching is None:  # a list, say: it is all there
        return text_of_tokens(items_of(source) or ()) if is_list(source) else None
    return _followed(place, stream, watching) if replace_field(response, "response_gen", watching) else None


def _chat_stream(place: Place, response: Any, listener: StreamListener) -> Stream:
    known = _known(place, response)
    if known is None:
        known = _followed(place, Stream(place, listener), response)
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
