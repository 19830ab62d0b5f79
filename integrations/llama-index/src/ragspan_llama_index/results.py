"""Notes the answer that a call or a synthesis returned, and watches it where it comes token by token."""

from __future__ import annotations

from collections.abc import Callable
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
from ragspan_llama_index.nodes import seen
from ragspan_llama_index.roles import CALL, CHAT_WRITER, MODEL
from ragspan_llama_index.steps import Request, Step
from ragspan_llama_index.streams import Stream
from ragspan_llama_index.watching import layers_of, watched

OnEnd = Callable[[Stream], None]


def note_result(request: Request, step: Step, result: Any, on_end: OnEnd) -> None:
    """The step returned this, and its inner steps are done."""
    part = answer_in(result)
    kind = kind_of(part)
    if kind in STREAMS:
        step.answer = _watch(request, step, part, on_end, is_async=kind == "AsyncStreamingResponse")
    elif kind == CHAT_STREAM:
        step.answer = _chat_stream(request, step, part, on_end)
        if not part.is_writing_to_memory:  # then its user reads the model's stream, and no writer does
            watch_chat(request, step, part, on_end)
    elif kind == GENERATOR:
        step.answer = _watch_bare(request, step, result, part, on_end)
    else:
        step.answer = text_of(part)
        step.result = part
        if step.is_run and kind is None:
            step.fields = texts_in(part)
    found_unseen = step.role is CALL
    for child in reversed(step.children):
        if step.origin is None and _handed_on(child, step):
            step.origin = child
        child.result = None
        found_unseen = found_unseen and child.role is MODEL
    if found_unseen:  # then what it found was found in a way that no span shows
        step.given = seen(getattr(part, "source_nodes", None))


def watch_chat(request: Request, step: Step, response: Any, on_end: OnEnd) -> None:
    """A chat engine's stream is about to be read, for the user and for the memory."""
    stream = _chat_stream(request, step, response, on_end)
    step.answer = stream
    if stream.is_watched:
        return
    stream.is_watched = True
    for name, is_async in (("chat_stream", False), ("achat_stream", True)):
        source = getattr(response, name)
        watching = None if source is None else watched(source, stream, _delta, is_async=is_async)
        if watching is not None:
            setattr(response, name, watching)


def _handed_on(child: Step, step: Step) -> bool:
    if isinstance(step.answer, Stream):
        return child.answer is step.answer and child.role is not CHAT_WRITER
    return child.result is not None and child.result is step.result and not isinstance(child.result, (str, int))


def _watch(request: Request, step: Step, response: Any, on_end: OnEnd, *, is_async: bool) -> Stream | str | None:
    source = response.response_gen
    stream = _known(request, source)
    if stream is not None:
        return stream
    if isinstance(response.response_txt, str):
        return response.response_txt  # the framework has read it by itself
    stream = Stream((request, step), on_end)
    watching = watched(source, stream, is_async=is_async)
    if watching is None:  # a list, say: it is all there
        return text_of_tokens(source) if isinstance(source, (list, tuple)) else None
    try:
        response.response_gen = watching
    except Exception:  # noqa: BLE001  a program's own class that cannot be changed
        return None
    stream.is_watched = True
    stream.follow(watching)
    request.streams.append(stream)
    return stream


def _known(request: Request, source: Any) -> Stream | None:
    """The stream that is watched already, bare or inside another instrumentation's wrapper."""
    if not request.streams:
        return None
    layers = layers_of(source)
    return next((known for known in request.streams for layer in layers if known.belongs_to(layer)), None)


def _watch_bare(request: Request, step: Step, result: Any, source: Any, on_end: OnEnd) -> Stream | None:
    """Watch a generator that stands in the result for the answer; or the framework's stream that feeds it, if any."""
    stream = _known(request, source)
    if stream is None and result is not source:
        made = Stream((request, step), on_end)
        watching = watched(source, made, _text_or_delta, is_async=hasattr(type(source), "__anext__"))
        if watching is not None and hand_out(result, source, watching):
            made.is_watched = True
            made.follow(watching)
            request.streams.append(made)
            stream = made
    return stream or next((known for known in reversed(request.streams) if not known.over), None)


def _chat_stream(request: Request, step: Step, response: Any, on_end: OnEnd) -> Stream:
    for known in request.streams:
        if known.belongs_to(response):
            return known
    stream = Stream((request, step), on_end)
    stream.follow(response)
    request.streams.append(stream)
    return stream


def _text_or_delta(token: Any) -> Any:
    return token if isinstance(token, str) else _delta(token) or token


def _delta(chunk: Any) -> str:
    delta = getattr(chunk, "delta", None)
    return delta if isinstance(delta, str) else ""
