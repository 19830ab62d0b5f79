"""Reads the answer that a call or a synthesis returned, and watches it where it comes token by token."""

from __future__ import annotations

from typing import Any

from ragspan_llama_index.answering import (
    CHAT_STREAM,
    GENERATOR,
    STREAMS,
    answer_in,
    hand_out,
    kind_of,
    text_of,
    text_of_tokens,
    texts_in,
)
from ragspan_llama_index.payloads import whole_nodes_in
from ragspan_llama_index.roles import CALL, MODEL, STEPS
from ragspan_llama_index.streams import OnEnd, Place, Stream, layers_of, watched


def answer_of(place: Place, result: Any, on_end: OnEnd) -> dict[str, Any]:
    """What is noted of the result of a call or a synthesis, whose inner steps are done."""
    log = place[0]
    part = answer_in(result)
    kind = kind_of(part)
    payload: dict[str, Any] = {}
    answer: Stream | str | None
    if kind in STREAMS:
        answer = _watch(place, part, on_end, is_async=kind == "AsyncStreamingResponse")
    elif kind == CHAT_STREAM:
        answer = _chat_stream(place, part, on_end)
        if not part.is_writing_to_memory:  # then its user reads the model's stream, and no writer does
            watch_chat(place, part, on_end)
    elif kind == GENERATOR:
        answer = _watch_bare(place, result, part, on_end)
    else:
        answer = text_of(part)
        if answer is not None:
            log.texts[id(answer)] = answer
        if part is not None and not isinstance(part, (str, int)):
            log.kept[id(part)] = (part, None)  # so that this identity is of nothing else until the end
            payload["result"] = id(part)
        if kind is None and place[2] == CALL:
            payload["fields"] = texts = texts_in(part)
            log.texts.update((id(text), text) for text in texts)
    payload["answer"] = answer
    if place[2] == CALL and _only_asked_models(place):  # then what it found was found in a way that no span shows
        sources = getattr(part, "source_nodes", None)
        payload["given"] = whole_nodes_in(sources, log) if isinstance(sources, (list, tuple)) else ()
    return payload


def watch_chat(place: Place, response: Any, on_end: OnEnd) -> Stream:
    """A chat engine's stream is about to be read, for the user and for the memory."""
    stream = _chat_stream(place, response, on_end)
    if stream.is_watched:
        return stream
    stream.is_watched = True
    for name, is_async in (("chat_stream", False), ("achat_stream", True)):
        source = getattr(response, name)
        watching = None if source is None else watched(source, stream, _delta, is_async=is_async)
        if watching is not None:
            setattr(response, name, watching)
    return stream


def _only_asked_models(place: Place) -> bool:
    """Whether the steps directly inside a call are calls of models."""
    log, span_id = place[0], place[1]
    for event in reversed(log.events):
        if event[2] == span_id and event[0] != MODEL:
            return event[0] not in STEPS
        if event[1] == span_id and event[0] == CALL:
            return True
    return True


def _watch(place: Place, response: Any, on_end: OnEnd, *, is_async: bool) -> Stream | str | None:
    source = response.response_gen
    stream = _known(place, source)
    if stream is not None:
        return stream
    if isinstance(response.response_txt, str):
        return response.response_txt  # the framework has read it by itself
    stream = Stream(place, on_end)
    watching = watched(source, stream, is_async=is_async)
    if watching is None:  # a list, say: it is all there
        return text_of_tokens(source) if isinstance(source, (list, tuple)) else None
    try:
        response.response_gen = watching
    except Exception:  # noqa: BLE001  a program's own class that cannot be changed
        return None
    _follow(place, stream, watching)
    return stream


def _watch_bare(place: Place, result: Any, source: Any, on_end: OnEnd) -> Stream | None:
    """Watch a generator that stands in the result for the answer; or the framework's stream that feeds it, if any."""
    stream = _known(place, source)
    if stream is None and result is not source:
        made = Stream(place, on_end)
        watching = watched(source, made, _text_or_delta, is_async=hasattr(type(source), "__anext__"))
        if watching is not None and hand_out(result, source, watching):
            _follow(place, made, watching)
            stream = made
    return stream or next((known for known in reversed(_streams(place)) if not known.over), None)


def _chat_stream(place: Place, response: Any, on_end: OnEnd) -> Stream:
    for known in _streams(place):
        if known.belongs_to(response):
            return known
    stream = Stream(place, on_end)
    stream.follow(response)
    _streams(place).append(stream)
    return stream


def _follow(place: Place, stream: Stream, watching: Any) -> None:
    stream.is_watched = True
    stream.follow(watching)
    _streams(place).append(stream)


def _streams(place: Place) -> list[Stream]:
    """The streams of the request."""
    streams: list[Stream] = place[0].about.setdefault("streams", [])
    return streams


def _known(place: Place, source: Any) -> Stream | None:
    """The stream that is watched already, bare or inside another instrumentation's wrapper."""
    streams = _streams(place)
    layers = layers_of(source) if streams else ()
    return next((known for known in streams for layer in layers if known.belongs_to(layer)), None)


def _text_or_delta(token: Any) -> Any:
    return token if isinstance(token, str) else _delta(token) or token


def _delta(chunk: Any) -> str:
    delta = getattr(chunk, "delta", None)
    return delta if isinstance(delta, str) else ""
