"""Notes the framework's spans and events in the log of their request, on the request path; `record` decides, in the worker."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from sys import modules
from time import time_ns
from typing import Any

from llama_index_instrumentation import get_dispatcher
from llama_index_instrumentation.dispatcher import active_instrument_tags

from ragspan.capturing import MAX_RUNS, EventKind, OpenRequests, OuterRun, RequestLog, TokenStream, current_anchor
from ragspan.messages import LEFT, note_error
from ragspan.records import RecordSink, RetrievedContext, SpanAnchor
from ragspan.safe_copy import fields_of, kept_entries
from ragspan.safe_copy import text_of as plain_text
from ragspan_llama_index.answers import DATA, event_fields, kind_of
from ragspan_llama_index.classes import BEFORE_UUID, GENERATOR, ClassFacts, Role, answers_nobody, facts_about, has_base
from ragspan_llama_index.nodes import documents_now, documents_of, nodes_among
from ragspan_llama_index.payloads import STARTS, end_of_model, end_of_tool, texts_given
from ragspan_llama_index.record import record_of_log, tree_inside
from ragspan_llama_index.streams import Place, Stream, StreamListener, output_or_stream, streams_of, watch_chat

_OPENINFERENCE = "openinference.instrumentation.llama_index"  # its module; never imported here
_START, _END, _FILLED = EventKind.START, EventKind.END, EventKind.FILLED  # members are slow to look up
_EVENTS = {
    **dict.fromkeys(("LLMChatInProgressEvent", "LLMCompletionInProgressEvent"), True),
    **dict.fromkeys(("LLMChatEndEvent", "LLMCompletionEndEvent"), False),
}
"""The events that tell something: whether it is a token."""
_SYNTHESIS = frozenset({"synthesis", "chunks"})
_ANSWERING = frozenset({"call", "synthesis", "chunks"})
_PARTS = frozenset({"chunks", "asking"})  # of a synthesis
_ASKS = frozenset({"model", "asking"})
_READING = frozenset({"model", "tool"})  # what a program may hand nodes to that it has changed
_NESTED = frozenset({"search", "tool"})  # whose methods call one another


class SpanRecorder:
    """Notes the spans and events of the dispatcher, for one sink.

    Args:
        sink: gets a capture of each request.
    """

    def __init__(self, sink: RecordSink) -> None:
        self.sink = sink
        self._requests: OpenRequests[Place] = OpenRequests(sink, record_of_log, tree_inside, on_end=self._on_end)
        self._live = self._requests.live

        def finish(stream: Stream) -> None:
            place = stream.place
            if place is not None and place[0].about.get("awaited") is stream:
                self._requests.finish(place[0])

        self._pulled: ContextVar[Stream | None] = ContextVar("ragspan_llama_index_pulled", default=None)
        self._listener: StreamListener = (finish, self._pulled)

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
            place = self._live.get(parent_id or "")
            if instance is not None:  # else it is a step of a workflow
                facts = facts_about(type(instance))
                role = facts.roles.get(id_[BEFORE_UUID])
                if role is not None:
                    stream = self._pulled.get()
                    if stream is not None and (maker := stream.place) is not None:  # where the token is made, or read
                        is_same = place is not None and place[0] is maker[0]
                        if place is None or not is_same or (maker[2] == "synthesis" and not place[3]):
                            place = maker
                    place = place or self._place_at_top(role, id_, parent_id, tags)
                    if place is None:
                        return
                    place = self._enter(role, facts, place, id_, bound_args.arguments, instance)
            if place is not None:  # a step, or a part of the step around it
                log = place[0]
                log.keys.append(id_)
                self._live[id_] = place
                if log.over:  # in another thread, or just now
                    self._requests.unfollow(log, id_)
            elif parent_id is not None:
                self._requests.ended.inherit(id_, parent_id)
        except Exception as problem:  # noqa: BLE001
            self._requests.report(problem)

    def span_exit(self, id_: str, *, result: Any = None, **__: Any) -> None:  # noqa: C901, PLR0912  on the request path
        try:
            place = self._live.get(id_)
            if place is None or (place[1] != id_ and "is_run" not in place[0].about):
                return
            log, step_id, role, _, beside = place
            if step_id != id_:
                if not log.about["is_agent"] and has_base(type(result), "Event"):
                    documents_of(nodes_among(fields := event_fields(result)), log)  # of a step's own search
                    log.note(EventKind.DOCUMENTS, step_id or "", None, DATA.take(fields, log), "event")
                return
            ended_ns = time_ns()
            payload: Any = None
            notes: Any = None
            try:
                if role == "model":
                    if kind_of(result) == GENERATOR:  # its words come later, past its span
                        self._live[id_] = (*place[:4], [])
                        return
                    payload, notes = end_of_model(result, log)
                elif role == "search" or role == "postprocessing":  # noqa: PLR1714  a set takes longer
                    payload = documents_of(result, log)
                elif role == "call" or role == "synthesis":  # noqa: PLR1714  as above
                    payload = output_or_stream(place, result, self._listener)
                    if role == "synthesis":
                        if beside:  # it wrote its nodes down in a way of its own
                            log.about["reread"] = True
                    elif not beside:  # it asked models only: what it found was found in a way that no span shows
                        found = documents_of(fields_of(result).get("source_nodes"), log)
                        log.note(EventKind.DOCUMENTS, id_, None, found, "source_nodes")
                elif role == "tool":
                    payload = end_of_tool(result, log)
                elif role == "chat writer":
                    beside.complete()
            except Exception as problem:  # noqa: BLE001  whatever a program returns: the request ends all the same
                self._requests.report(problem)
            if id_ != log.root:
                log.events.append((_END, id_, None, ended_ns, payload, notes))
                return
            if log.span_finder is not None:
                log.find_span()
            if result is None and "is_run" in log.about:  # so ends a run that its caller cancels
                log.note(EventKind.ERROR, id_, None, LEFT)
            else:
                log.events.append((_END, id_, None, ended_ns, payload, None))
                if isinstance(payload, Stream):
                    log.about["awaited"] = payload
                    if not payload.over:  # it may just have ended in another thread
                        return
            self._requests.finish(log)
        except Exception as problem:  # noqa: BLE001
            self._requests.report(problem)

    def span_drop(self, id_: str, err: BaseException | None = None, **_: Any) -> None:
        try:
            place = self._live.get(id_)
            if place is None:
                return
            error, log, is_step = GeneratorExit() if err is None else err, place[0], place[1] == id_
            # Others hand on what an inner step tells.
            is_shown = is_step and (place[2] not in _ANSWERING or id_ == log.root)
            if is_step and place[2] == "chat writer":
                place[4].fail(error)
            log.note(EventKind.ERROR, id_, None, note_error(error, with_message=is_shown))
            if id_ == log.root:
                self._requests.finish(log)
        except Exception as problem:  # noqa: BLE001
            self._requests.report(problem)

    def event(self, event: Any, **__: Any) -> None:
        """A model's stream gave a token, or ended. Spans report all other events as well."""
        try:
            kind = type(event).__name__
            if kind not in _EVENTS:
                return
            own, is_token = event.__dict__, _EVENTS[kind]
            place = self._live.get(own["span_id"])
            if place is None or (is_token and place[3]):  # the words of one inside a synthesis are its answer's
                return
            tokens = place[4]
            if tokens is None or place[2] != "model":  # only of a model's stream
                return
            if not is_token:
                place[0].note(EventKind.READ, place[1] or "", None, *end_of_model(own.get("response"), place[0]))
                return
            if not tokens:
                place[0].streams[place[1] or ""] = stream = TokenStream()
                stream.tokens = tokens
            delta = fields_of(own.get("response")).get("delta")
            tokens.append(delta if type(delta) is str else plain_text(delta) or "")
        except Exception as problem:  # noqa: BLE001
            self._requests.report(problem)

    def record_contexts(self, span_id: str, contexts: Sequence[RetrievedContext]) -> bool:
        """The program says that these contexts reach the prompt; False when the span is not followed."""
        place = self._live.get(span_id)
        if place is None or place[0].over:
            return False
        for context in contexts:
            place[0].count(context.text)
        place[0].note(EventKind.CONTEXTS, "", place[1], tuple(contexts))
        return True

    def around(self, span_id: str) -> OuterRun | None:
        """The step that a span belongs to, with its request, if it is live."""
        place = self._live.get(span_id)
        return None if place is None or place[1] is None else OuterRun(place[0], place[1])

    def close(self) -> None:
        """Forget everything that is open: streams go on, and are not recorded."""
        self._requests.discard()

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
                log.about["metadata"] = own = kept_entries(given, texts=log.texts)
                log.parts += 3 * len(own)
            if _OPENINFERENCE in modules:
                log.span_finder = lambda: _span_of(span_id)
                log.find_span()
        return log, None, None, False, None

    def _enter(  # noqa: C901, PLR0912  on the request path, where each call takes its time
        self, role: Role, facts: ClassFacts, place: Place, span_id: str, arguments: Mapping[str, Any], instance: Any
    ) -> Place:
        """A step begins in a request, or a part of a step that does what it does."""
        log, step_id, around, inside_synthesis, others = place
        if inside_synthesis or around in _SYNTHESIS:
            if role == "chunks" and around == "synthesis":  # its nodes, as written for the model before it packs them
                log.events.append((_FILLED, step_id, None, time_ns(), texts_given(arguments, log), None))
                if others:
                    others.clear()
                return log, step_id, "chunks", inside_synthesis, None
            if role in _PARTS:
                return place
            inside_synthesis = True
        if role == around and role in _NESTED:
            return place
        if log.span_finder is not None:
            log.find_span()
        began_ns = time_ns()
        beside: Any = [] if role == "call" else [True] if role == "synthesis" else None  # as `Place` has it
        try:
            if role == "chat writer":
                payload, about, beside = None, facts.name, watch_chat(place, instance, self._listener)
            else:
                payload, about = STARTS[role](arguments, instance, facts, log)
        except Exception as problem:  # noqa: BLE001  whatever a program passes: the step is followed all the same
            self._requests.report(problem)
            payload, about = None, facts.name
        log.events.append((_START, span_id, step_id, began_ns, None if role == "asking" else payload, about))
        if role in _PARTS:
            log.events.append((_FILLED, span_id, None, began_ns, payload or (), None))
        if role in _READING and not inside_synthesis:
            log.about["reread"] = True
        if around == "call" and role not in _ASKS:
            others.append(role)
        if len(log.keys) >= MAX_RUNS:
            self._requests.give_up(log)
        return log, span_id, "synthesis" if role == "chunks" else role, inside_synthesis, beside

    def _on_end(self, log: RequestLog) -> None:
        """The request is over: forget its streams, and read nodes again where the answer may rest on them."""
        if log.streams:
            for stream in streams_of(log):
                stream.forget()
        try:
            if log.kept and ("reread" in log.about or not log.root):
                log.note(EventKind.REREAD, "", None, documents_now(log))
        except Exception as problem:  # noqa: BLE001  a program's own class
            self._requests.report(problem)


def _span_of(span_id: str) -> SpanAnchor | None:
    """The span that OpenInference made for this span of the framework, if it has it open by now."""
    for handler in get_dispatcher().span_handlers:
        if type(handler).__module__.startswith("openinference."):
            try:
                span = handler.open_spans.get(span_id)  # the framework's base class has a place for them
                return None if span is None else current_anchor(span.context)
            except Exception:  # noqa: BLE001  another library's object in whatever version: no span is an answer
                return None
    return None
