"""Notes the framework's spans and events in the log of their request, on the request path.

A call belongs to the request of the span around it. Spans are followed until their request ends; later events are ignored.
`ragspan.capturing.open_requests` has the other guarantees. Nothing is decided here that can be decided later: `fold` makes the
record of a log, in the worker.
"""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import Mapping, Sequence
from sys import modules
from time import time_ns
from typing import Any

from llama_index_instrumentation import get_dispatcher
from llama_index_instrumentation.dispatcher import active_instrument_tags

from ragspan.capturing import MAX_RUNS, EventKind, OpenRequests, OuterRun, RequestLog, TokenStream, current_anchor
from ragspan.messages import NotedError, is_abandonment, note_error
from ragspan.records import RecordSink, RetrievedContext, SpanAnchor
from ragspan.safe_copy import class_name, fields_of, has_plain_dict, is_list, kept_entries, remember
from ragspan.safe_copy import text_of as plain_text
from ragspan_llama_index.classes import (
    GENERATOR,
    KNOWN,
    UUID_LENGTH,
    ClassFacts,
    Role,
    answers_nobody,
    facts_about,
    kind_of,
)
from ragspan_llama_index.fold import record_of, tree_inside
from ragspan_llama_index.nodes import later_texts, nodes_in
from ragspan_llama_index.payloads import (
    STARTS,
    argument,
    end_of_model,
    end_of_tool,
    hands_on,
    is_cancelled,
    note_work,
    reply_in,
    texts_given,
)
from ragspan_llama_index.reading import Reading
from ragspan_llama_index.results import answer_of, watch_chat
from ragspan_llama_index.streams import Place, Stream, pulled, reader_or_maker, streams_of

_MAX_INTERRUPTED = 128
_OPENINFERENCE = "openinference.instrumentation.llama_index"  # its module; never imported here
_EVENTS = {
    **dict.fromkeys(("LLMChatInProgressEvent", "LLMCompletionInProgressEvent"), "token"),
    **dict.fromkeys(("LLMChatEndEvent", "LLMCompletionEndEvent"), "end"),
}
_KINDS: dict[int, tuple[str | None, bool, type]] = {}
"""Of the classes of events by their identity: what they tell, whether `has_plain_dict`, and the class, which is kept."""
_SYNTHESIS = frozenset({"synthesis", "chunks"})
_ANSWERING = frozenset({"call", "synthesis", "chunks"})
_NESTED = frozenset({"search", "tool"})  # whose methods call one another
_STANDS_FOR: Mapping[Role, Role] = {"chunks": "synthesis", "asking": "model"}  # where nothing around it does


class SpanRecorder:
    """Notes the spans and events of the dispatcher, for one sink.

    Args:
        sink: gets a capture of each request.
        limits: of the requests that are open, as `OpenRequests` has them.
    """

    def __init__(self, sink: RecordSink, **limits: Any) -> None:
        self.sink = sink
        self._requests: OpenRequests[Place] = OpenRequests(sink, record_of, tree_inside, on_end=self._on_end, **limits)
        self._live = self._requests.live
        self._interrupted: deque[RequestLog] = deque(maxlen=_MAX_INTERRUPTED)

    @property
    def open_spans(self) -> int:
        return len(self._live)

    # The dispatcher calls these. Each method is a boundary: an error inside is logged and counted, and costs a score, never
    # an answer.

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
            if instance is None:
                if place is not None:
                    note_work(place[0], id_, bound_args.arguments)
            else:
                facts = KNOWN.get(id(type(instance))) or facts_about(type(instance))
                role = facts.methods.get(id_[facts.method_start : -UUID_LENGTH]) if facts.methods else None
                if role is not None:
                    stream = pulled.get()
                    if stream is not None and stream.place is not None:
                        place = reader_or_maker(place, stream.place)
                    place = place or self._place_at_top(role, id_, parent_id, tags)
                    if place is None:
                        return
                    place = self._enter(role, facts, place, id_, bound_args.arguments, instance)
            if place is not None:  # a step, or a part of the step around it
                log = place[0]
                keys = log.keys
                keys.append(id_)
                self._live[id_] = place
                if log.over or len(keys) > MAX_RUNS:
                    self._requests.unfollow(log, id_)
            elif parent_id is not None:
                self._requests.ended.inherit(id_, parent_id)
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
                return
            if place[1] == id_:
                self._note_end(place, result)
            elif instance is None and (result is not None or not is_cancelled()):
                place[0].note(
                    EventKind.WORK_OVER, id_, about=hands_on(result)
                )  # cancelled at its work it returns nothing, too
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
            place = self._live.get(id_)
            if place is None:
                return
            error = GeneratorExit() if err is None else err
            log, is_abandoned = place[0], is_abandonment(error)
            payload: dict[str, Any] = {"error": class_name(type(error))}
            if place[1] == id_:
                is_shown = place[2] not in _ANSWERING or id_ == log.root  # the others hand on what a step inside tells
                payload["noted"] = note_error(error) if is_shown else NotedError(type(error), "", ())
                if place[2] == "search" and _OPENINFERENCE in modules:
                    payload["span"] = openinference_anchor(id_)
            log.note(EventKind.ERROR, id_, None, payload, is_abandoned)
            if place[1] == id_ and place[2] == "chat writer" and place[4] is not None:
                place[4].fail(error)
            elif id_ == log.root:
                log.about["aborted"] = is_abandoned
                self._requests.finish(log)
        except Exception as problem:  # noqa: BLE001
            self._requests.report(problem)

    def event(self, event: Any, **__: Any) -> None:
        """A model's stream gave a token, or ended. Spans report all other events as well."""
        try:
            try:
                kind, is_plain, _ = _KINDS[id(type(event))]
            except KeyError:
                kind, is_plain, _ = _kind_of_event(type(event))
            if kind is None:
                return
            if not is_plain or type(own := event.__dict__) is not dict:
                own = fields_of(event)
            place = self._live.get(own["span_id"])
            if place is None or (place[3] and kind == "token"):  # those inside a synthesis are its answer's
                return
            if place[2] != "model" or place[4] is None:  # only of a stream
                return
            if kind == "token":
                delta = fields_of(own.get("response")).get("delta")
                place[4].append(delta if type(delta) is str else plain_text(delta) or "")
            else:
                log = place[0]
                log.note(EventKind.READ, place[1], None, reply_in(own.get("response"), log, inside_synthesis=place[3]))
        except Exception as problem:  # noqa: BLE001
            self._requests.report(problem)

    def record_contexts(self, span_id: str, contexts: Sequence[RetrievedContext]) -> bool:
        """The program says that these contexts reach the prompt; False when the span is not followed."""
        place = self._live.get(span_id)
        if place is None or place[0].over:
            return False
        for context in contexts:
            place[0].count(context.text)
        place[0].note(EventKind.CONTEXTS, "", place[1], {"recorded": tuple(contexts)})
        return True

    def around(self, span_id: str) -> OuterRun | None:
        """The step that a span belongs to, with its request, if it is live."""
        place = self._live.get(span_id)
        return None if place is None else OuterRun(place[0], place[1])

    def close(self) -> None:
        """Forget everything that is open: streams go on, and are not recorded."""
        self._requests.discard()
        self._interrupted.clear()

    # Starts

    def _place_at_top(
        self, role: Role, span_id: str, parent_id: str | None, tags: Mapping[str, Any] | None
    ) -> Place | None:
        """The place of a step whose outer span is not followed: a new request or a block; None if it answers nobody."""
        ended = self._requests.ended
        if parent_id is not None and ended.inherit(span_id, parent_id):
            return None  # it goes on in the background after the end of its request, or it is part of no request
        within = self._requests.within()
        if within is None:
            if answers_nobody(role):
                ended.add_all((span_id,))  # it is not a request, and neither is what it asks on its way
                return None
            if role not in _ANSWERING:
                return None
        log = self._requests.begin(span_id, within)
        if log is None:
            return None
        if not log.grouped:
            log.root = span_id
            given = active_instrument_tags.get() if tags is None else tags
            if type(given) is not dict or given:
                log.about["tags"] = own = kept_entries(given, texts=log.texts)
                log.parts += 3 * len(own)
            if _OPENINFERENCE in modules and _openinference_is_active():
                log.look_for_span(lambda: openinference_anchor(span_id))
        return log, "", None, False, None

    def _enter(
        self,
        role: Role,
        facts: ClassFacts,
        place: Place,
        span_id: str,
        arguments: Mapping[str, Any],
        instance: Any,
    ) -> Place:
        """A step begins in a request, or a part of a step that does what it does."""
        log, step_id, around, inside_synthesis, others = place
        inside_synthesis = inside_synthesis or around in _SYNTHESIS
        if inside_synthesis if role in _STANDS_FOR else role == around and role in _NESTED:
            if role == "chunks" and around == "synthesis":
                return _note_texts(place, arguments)
            return place
        if log.span_finder is not None:
            log.find_span()
        began_ns = time_ns()
        payload: dict[str, Any] | None = None
        beside: Any = (  # as `Place` has it
            [] if role == "call" else [argument(arguments, "nodes", 1)] if role == "synthesis" else None
        )
        try:
            if role == "chat writer":
                beside = watch_chat(place, instance, self._end_of_stream)
                payload = {"answer": beside}
            else:
                payload = STARTS[role](arguments, instance, log)
                if role == "search" and _OPENINFERENCE in modules:
                    payload["span"] = openinference_anchor(span_id)
        except Exception as problem:  # noqa: BLE001  whatever a program passes: the step is followed all the same
            self._requests.report(problem)
        role = _STANDS_FOR.get(role, role)
        if around == "call" and role != "model":
            others.append(role)
        if role == "tool" or (role == "model" and not inside_synthesis):
            log.about["asks"] = True
        elif span_id == log.root and "run" in facts.methods:
            log.about |= {"is_run": True, "is_resumed": (payload or {}).get("is_resumed")}
        log.events.append((EventKind.START, span_id, step_id, began_ns, payload, (role, facts)))
        return log, span_id, role, inside_synthesis, beside

    # Ends

    def _note_end(self, place: Place, result: Any) -> None:
        """Note what a step returned."""
        log, span_id, role, inside_synthesis, beside = place
        ended_ns = time_ns()
        payload: dict[str, Any] | None = None
        try:
            if role in _ANSWERING:
                payload = answer_of(place, result, self._end_of_stream)
                # Nodes that it wrote down in a way of its own.
                if role == "synthesis" and beside and is_list(beside[0]):
                    payload["given"] = nodes_in(beside[0], log, whole=True)
            elif role == "model" and kind_of(result) == GENERATOR:  # its words come later, past its span
                stream = log.streams[span_id] = TokenStream()
                payload = {"streams": True, "tokens": stream.tokens}
                self._live[span_id] = (log, span_id, role, inside_synthesis, stream.tokens)
            elif role == "model":
                payload = end_of_model(result, log, inside_synthesis=inside_synthesis)
            elif role == "chat writer":
                beside.complete()
            elif role == "tool":
                payload = end_of_tool(result, log)
            else:
                payload = {"found": nodes_in(result, log)}
                if role == "search" and _OPENINFERENCE in modules:
                    payload["span"] = openinference_anchor(span_id)
        except Exception as problem:  # noqa: BLE001  whatever a program returns: the request ends all the same
            self._requests.report(problem)
        log.events.append((EventKind.END, span_id, None, ended_ns, payload, None))
        if span_id == log.root:
            self._end_of_root(log, None if payload is None else payload.get("answer"), result)

    def _end_of_root(self, log: RequestLog, answer: Any, result: Any) -> None:
        if log.span_finder is not None:
            log.find_span()
        if result is None and "is_run" in log.about:
            log.about["aborted"] = True  # so ends a run that its caller cancels
        if isinstance(answer, Stream):
            log.about["awaited"] = answer
            if not answer.over:  # it may just have ended in another thread
                return
        self._requests.finish(log)

    def _end_of_stream(self, stream: Stream) -> None:
        place = stream.place
        if place is not None and place[0].about.get("awaited") is stream:
            self._requests.finish(place[0])

    def _on_end(self, log: RequestLog) -> None:
        """The request is over: forget its streams, and read nodes again where the answer may rest on them."""
        if log.streams:
            for stream in streams_of(log):
                stream.forget()
        try:
            if "asks" in log.about or "synthesis" not in log.about:
                log.note(EventKind.NODES, "", None, later_texts(log))
            if "is_run" in log.about:
                self._note_interruption(log)
        except Exception as problem:  # noqa: BLE001  a program's own class
            self._requests.report(problem)

    def _note_interruption(self, log: RequestLog) -> None:
        if log.about["is_resumed"]:
            log.earlier = tuple(self._interrupted)
        if (log.abandoned or log.about.get("aborted")) and Reading(log).is_interrupted:
            self._interrupted.append(log)


def _kind_of_event(kind: type) -> tuple[str | None, bool, type]:
    return remember(_KINDS, kind, (_EVENTS.get(class_name(kind)), has_plain_dict(kind), kind))


def _note_texts(place: Place, arguments: Mapping[str, Any]) -> Place:
    """A synthesizer wrote its nodes for the model. Later it only packs or shortens these texts."""
    log, step_id, _, inside_synthesis, nodes = place
    log.events.append((EventKind.TEXTS, step_id, None, time_ns(), {"texts": texts_given(arguments, log)}, None))
    if nodes:
        nodes.clear()  # they need not be read again
    return log, step_id, "chunks", inside_synthesis, None


# The spans that OpenInference makes for a request, where it instruments LlamaIndex too


def _openinference_is_active() -> bool:
    instrumentor = getattr(modules.get(_OPENINFERENCE), "LlamaIndexInstrumentor", None)
    return instrumentor is not None and instrumentor().is_instrumented_by_opentelemetry is True


def openinference_anchor(span_id: str) -> SpanAnchor | None:
    """The span that OpenInference made for this span of the framework, if it has it open by now.

    Its handler is one of the dispatcher's, and keeps its spans where the framework's base class has a place for them.
    """
    for handler in get_dispatcher().span_handlers:
        if type(handler).__module__.startswith("openinference."):
            try:
                span = handler.open_spans.get(span_id)
                return None if span is None else current_anchor(span.context)
            except Exception:  # noqa: BLE001  another library's object in whatever version: no span is an answer
                return None
    return None
