"""Notes the framework's spans and events in the log of their request, on the request path.

Guarantees:

- Every method returns in microseconds, takes no lock, does no I/O, makes no span and attaches no context. Lists and
  dictionaries are changed by single operations that are atomic under the interpreter's lock, so that a stream which ends
  in the collector may come in at any point, in any thread.
- What is known of a request is dropped when the request is over, whether or not its inner spans ended. Requests that
  never end are handed over as aborted after a while, or when too many are open.
- One request gives one capture: calls whose outer span is followed belong to the request of that span. What comes after
  the end of its request is ignored.

Nothing is decided here that can be decided later: `fold` makes the record of a log, in the worker.
"""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from sys import modules
from time import time_ns
from typing import Any

from llama_index_instrumentation.dispatcher import active_instrument_tags

from ragspan.capturing import enclosing_answer
from ragspan.capturing.log import RequestLog
from ragspan.capturing.requests import OpenRequests
from ragspan.records import RecordSink, RetrievedContext, is_abandonment
from ragspan.step_texts import note_error
from ragspan_llama_index.anchors import OPENINFERENCE, note_span, openinference_anchor, openinference_is_active
from ragspan_llama_index.answering import GENERATOR, kind_of
from ragspan_llama_index.fold import record_of, request_of
from ragspan_llama_index.payloads import (
    STARTS,
    end_of_model,
    end_of_tool,
    is_cancelled,
    nodes_in,
    note_work,
    reply_in,
    texts_given,
    whole_nodes_in,
)
from ragspan_llama_index.results import answer_of, watch_chat
from ragspan_llama_index.roles import (
    ASKING,
    CALL,
    CHAT_WRITER,
    CHUNKS,
    KNOWN,
    MODEL,
    POSTPROCESSING,
    SEARCH,
    SYNTHESIS,
    TOOL,
    UUID_LENGTH,
    ClassFacts,
    Role,
    argument,
    builds_an_index,
    evaluates,
    facts_about,
)
from ragspan_llama_index.streams import Place, Stream, pulled, reader_or_maker

_MAX_SPANS = 50_000  # that are set apart
_MAX_INTERRUPTED = 128
_TOKENS = frozenset({"LLMChatInProgressEvent", "LLMCompletionInProgressEvent"})
_ENDS_OF_STREAMS = frozenset({"LLMChatEndEvent", "LLMCompletionEndEvent"})
_SYNTHESIS = frozenset({SYNTHESIS, CHUNKS})
_ANSWERING = frozenset({CALL, SYNTHESIS, CHUNKS})
_BARE = frozenset({SEARCH, POSTPROCESSING})
_NESTED = frozenset({SEARCH, TOOL})  # whose methods call one another
_STANDS_FOR = {CHUNKS: SYNTHESIS, ASKING: MODEL}  # where nothing around it does


def _ignore(*_: object) -> None:
    pass


class SpanRecorder:
    """Notes what the dispatcher says, for one sink.

    Args:
        sink: gets a capture of each request.
        on_request: is called when a request begins.
        limits: of the requests that are open, as `OpenRequests` has them.
    """

    def __init__(self, sink: RecordSink, *, on_request: Callable[[], None] = _ignore, **limits: Any) -> None:
        self.sink = sink
        self._on_request = on_request
        self._requests: OpenRequests[Place] = OpenRequests(sink, record_of, on_end=self._on_end, **limits)
        self._live = self._requests.live
        self._apart: dict[str, None] = {}  # open spans of work that is no request
        self._interrupted: deque[RequestLog] = deque(maxlen=_MAX_INTERRUPTED)

    @property
    def open_spans(self) -> int:
        return len(self._live) + len(self._apart)

    # Spans, as the dispatcher tells of them. Each method is a boundary: what goes wrong inside is logged and counted, and
    # costs a score, never an answer.

    def span_enter(
        self,
        id_: str,
        bound_args: inspect.BoundArguments,
        instance: Any | None = None,
        parent_id: str | None = None,
        tags: Mapping[str, Any] | None = None,
        **_: Any,
    ) -> None:
        try:
            place = self._live.get(parent_id) if parent_id else None
            if instance is not None:
                facts = KNOWN.get(type(instance)) or facts_about(type(instance))
                role = facts.methods.get(id_[facts.method_start : -UUID_LENGTH])
                if role is not None:
                    stream = pulled.get()
                    if stream is not None and stream.place is not None:
                        place = reader_or_maker(place, stream.place)
                    if place is None:
                        self._enter_at_top(role, facts, id_, bound_args.arguments, instance, parent_id, tags)
                    else:
                        self._enter(role, facts, place, id_, bound_args.arguments, instance)
                    return
            if place is not None:  # a part of the step around it
                if instance is None:
                    note_work(place[0], id_, bound_args.arguments)
                self._requests.follow(place[0], id_, place)
            elif parent_id is not None and self._is_apart(parent_id):
                self._set_apart(id_)
        except Exception as problem:  # noqa: BLE001
            self._requests.report(problem)

    def span_exit(
        self,
        id_: str,
        bound_args: inspect.BoundArguments,  # noqa: ARG002  the framework's signature
        instance: Any | None = None,
        result: Any | None = None,
        **_: Any,
    ) -> None:
        try:
            place = self._live.get(id_)
            if place is None:
                self._apart.pop(id_, None)
                return
            log = place[0]
            if not log.over:
                if place[1] == id_:
                    if self._note_end(place, result) or id_ == log.root:
                        return  # what reads a stream begins below this span, later
                elif instance is None:
                    if result is not None or not is_cancelled():  # cancelled at its work it returns nothing, too
                        log.note("work over", id_)
                elif kind_of(result) == GENERATOR:
                    return  # the same
            self._live.pop(id_, None)
        except Exception as problem:  # noqa: BLE001
            self._requests.report(problem)

    def span_drop(
        self,
        id_: str,
        bound_args: inspect.BoundArguments,  # noqa: ARG002  the framework's signature
        instance: Any | None = None,  # noqa: ARG002  as above
        err: BaseException | None = None,
        **_: Any,
    ) -> None:
        try:
            place = self._live.pop(id_, None)
            if place is None:
                self._apart.pop(id_, None)
                return
            error = GeneratorExit() if err is None else err
            log, is_abandoned = place[0], is_abandonment(error)
            payload: dict[str, Any] = {"error": type(error).__name__}
            if place[1] == id_:
                payload["noted"] = note_error(error)
                if place[2] == SEARCH:
                    payload["span"] = openinference_anchor(id_)
            log.note("error", id_, None, payload, is_abandoned)
            if place[1] == id_ and place[2] == CHAT_WRITER and place[4] is not None:
                place[4].fail(error)
            elif id_ == log.root:
                log.about["aborted"] = is_abandoned
                self._requests.finish(log)
        except Exception as problem:  # noqa: BLE001
            self._requests.report(problem)

    def event(self, event: Any, **_: Any) -> None:
        """A model's stream gave another token, or ended; or anything else, which the spans tell as well."""
        try:
            kind = type(event).__name__
            if kind not in _TOKENS and kind not in _ENDS_OF_STREAMS:
                return
            place = self._live.get(event.span_id)
            if place is None or place[2] != MODEL or place[4] is None:  # only of a stream
                return
            if kind in _ENDS_OF_STREAMS:
                log = place[0]
                log.note("read", place[1], None, reply_in(event.response, log, inside_synthesis=place[3]))
            elif not place[3]:
                place[4].append(event.response.delta)
        except Exception as problem:  # noqa: BLE001
            self._requests.report(problem)

    def record_contexts(self, span_id: str, contexts: Sequence[RetrievedContext]) -> bool:
        """The program says that these contexts reach the prompt; False when the span is not followed."""
        place = self._live.get(span_id)
        if place is None or place[0].over:
            return False
        place[0].texts.update((id(context.text), context.text) for context in contexts)
        place[0].note("contexts", "", place[1], {"recorded": tuple(contexts)})
        return True

    def close(self) -> None:
        """Forget everything that is open: streams go on, and nothing is recorded any more."""
        self._requests.discard()
        self._apart.clear()
        self._interrupted.clear()

    # Starts

    def _enter_at_top(
        self,
        role: Role,
        facts: ClassFacts,
        span_id: str,
        arguments: Mapping[str, Any],
        instance: Any,
        parent_id: str | None,
        tags: Mapping[str, Any] | None,
    ) -> None:
        """A step whose outer span is not followed: a request, a part of a block, or work that answers nobody."""
        if parent_id is not None and self._is_apart(parent_id):
            self._set_apart(span_id)  # it goes on in the background after the end of its request
            return
        if enclosing_answer() is None:
            if role in _BARE or (evaluates() if role == CALL else role in _SYNTHESIS and builds_an_index()):
                self._set_apart(span_id)  # it is no request, and neither is what it asks on its way
                return
            if role not in _ANSWERING:
                return
        log = self._requests.begin()
        if log is None:
            return
        if log.grouped:
            self._enter(role, facts, (log, "", "", False, None), span_id, arguments, instance)
            return
        self._on_request()
        log.root = span_id
        log.about["tags"] = active_instrument_tags.get() if tags is None else tags
        self._enter(role, facts, (log, "", "", False, None), span_id, arguments, instance)
        if facts.methods.get("run") == CALL and log.events:
            payload = log.events[0][4] or {}
            log.about |= {"is_run": True, "is_resumed": payload.get("is_resumed")}
        if OPENINFERENCE in modules and openinference_is_active():
            log.look_for_span(lambda: openinference_anchor(span_id))

    def _enter(
        self,
        role: Role,
        facts: ClassFacts,
        place: Place,
        span_id: str,
        arguments: Mapping[str, Any],
        instance: Any,
    ) -> None:
        """A step begins in a request, or a part of a step that does what it does."""
        log, step_id, around, inside_synthesis, _ = place
        inside_synthesis = inside_synthesis or around in _SYNTHESIS
        if inside_synthesis if role in _STANDS_FOR else role == around and role in _NESTED:
            if role == CHUNKS and around == SYNTHESIS:
                place = _note_texts(place, arguments)
            self._requests.follow(log, span_id, place)
            return
        if log.span_finder is not None:
            log.find_span()
        began_ns = time_ns()
        payload: dict[str, Any] | None = None
        beside: Any = None
        try:
            if role == CHAT_WRITER:
                beside = watch_chat(place, instance, self._end_of_stream)
                payload = {"answer": beside}
            else:
                payload = STARTS[role](arguments, instance, log)
            if role == SYNTHESIS:
                beside = [argument(arguments, "nodes", 1)]
            note_span(role, span_id, payload)
        except Exception as problem:  # noqa: BLE001  whatever a program passes: the step is followed all the same
            self._requests.report(problem)
        role = _STANDS_FOR.get(role, role)
        if role == TOOL or (role == MODEL and not inside_synthesis):
            log.about["asks"] = True
        log.events.append((role, span_id, step_id, began_ns, payload, facts))
        self._requests.follow(log, span_id, (log, span_id, role, inside_synthesis, beside))

    def _is_apart(self, span_id: str) -> bool:
        return span_id in self._apart or span_id in self._requests.ended

    def _set_apart(self, span_id: str) -> None:
        if len(self._apart) >= _MAX_SPANS:
            self._apart.clear()
        self._apart[span_id] = None

    # Ends

    def _note_end(self, place: Place, result: Any) -> bool:
        """Note what a step returned. True where what comes next belongs to it still: a stream, or the root's end."""
        log, span_id, role, inside_synthesis, beside = place
        ended_ns = time_ns()
        payload: dict[str, Any] | None = None
        try:
            if role in _ANSWERING:
                payload = answer_of(place, result, self._end_of_stream)
                if beside and isinstance(beside[0], (list, tuple)):  # nodes that it wrote down in a way of its own
                    payload["given"] = whole_nodes_in(beside[0], log)
                beside = payload["answer"]
            elif role == MODEL:
                payload = end_of_model(result, log, inside_synthesis=inside_synthesis)
            elif role == CHAT_WRITER:
                beside.complete()
            else:
                payload = end_of_tool(result, log) if role == TOOL else {"found": nodes_in(result, log)}
                note_span(role, span_id, payload)
        except Exception as problem:  # noqa: BLE001  whatever a program returns: the request ends all the same
            self._requests.report(problem)
        log.events.append(("end", span_id, None, ended_ns, payload, None))
        if role == MODEL:
            return payload is not None and "tokens" in payload and self._keep_streaming(place, payload["tokens"])
        stream = beside if isinstance(beside, Stream) and not beside.over else None
        if span_id == log.root:
            self._end_of_root(log, stream, result)
        return stream is not None or span_id == log.root

    def _keep_streaming(self, place: Place, tokens: list[Any]) -> bool:
        """The words of a model come later, past its span."""
        log, span_id, role, inside_synthesis, _ = place
        self._live[span_id] = (log, span_id, role, inside_synthesis, tokens)
        log.about.setdefault("tokens", []).append(tokens)
        return True

    def _end_of_root(self, log: RequestLog, stream: Stream | None, result: Any) -> None:
        if log.span_finder is not None:
            log.find_span()
        if result is None and "is_run" in log.about:
            log.about["aborted"] = True  # so ends a run that its caller cancels
        if stream is not None:
            log.about["awaited"] = stream
        if stream is None or stream.over:  # it may just have ended in another thread
            self._requests.finish(log)

    def _end_of_stream(self, stream: Stream) -> None:
        place = stream.place
        if place is not None and place[0].about.get("awaited") is stream:
            self._requests.finish(place[0])

    def _on_end(self, log: RequestLog) -> None:
        """The request is over: let go of streams, and read nodes again where the answer may rest on what was found."""
        about, texts = log.about, log.texts
        for stream in about.pop("streams", ()):
            stream.forget()
            about.setdefault("tokens", []).append(stream.tokens)
        for tokens in about.pop("tokens", ()):
            texts.update(zip(map(id, tokens), tokens, strict=False))  # another thread may add one
        nodes = [item for item, text in list(log.kept.values()) if text is not None]
        for _, text in list(log.kept.values()):
            if text is not None:
                texts[id(text)] = text
        try:
            if "asks" in about or all(
                event[0] != SYNTHESIS for event in log.events
            ):  # then the answer may rest on what was found
                log.note("nodes", "", None, {snapshot[0]: snapshot for snapshot in whole_nodes_in(nodes, log)})
            if "is_run" in about:
                self._note_interruption(log)
        except Exception as problem:  # noqa: BLE001  a program's own class
            self._requests.report(problem)

    def _note_interruption(self, log: RequestLog) -> None:
        if log.about["is_resumed"]:
            log.earlier = tuple(self._interrupted)
        if (log.abandoned or log.about.get("aborted")) and request_of(log).is_interrupted:
            self._interrupted.append(log)


def _note_texts(place: Place, arguments: Mapping[str, Any]) -> Place:
    """A synthesizer wrote its nodes down for the model; what it makes of these texts further on is packed or shortened."""
    log, step_id, _, inside_synthesis, nodes = place
    log.events.append(("texts", step_id, None, time_ns(), {"texts": texts_given(arguments, log)}, None))
    if nodes:
        nodes.clear()  # nobody need read them again
    return (log, step_id, CHUNKS, inside_synthesis, None)
