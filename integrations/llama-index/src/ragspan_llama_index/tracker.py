"""Follows the framework's spans from their start to their end, on the request path.

Guarantees:

- Every method returns in microseconds, takes no lock, does no I/O, makes no span and attaches no context. Lists and
  dictionaries are changed by single operations that are atomic under the interpreter's lock, so that a stream which ends
  in the collector may come in at any point, in any thread.
- What is known of a request is dropped when the request is over, whether or not its inner spans ended. Requests that
  never end are handed over as aborted after a while, or when too many are open.
- One request gives one capture: calls whose outer span is followed belong to the request of that span. What comes after
  the end of its request is ignored.
"""

from __future__ import annotations

import inspect
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from sys import modules
from typing import Any

from llama_index_instrumentation.dispatcher import active_instrument_tags
from opentelemetry.context import get_current

from ragspan.capturing import enclosing_answer
from ragspan.records import RecordSink, RetrievedContext, is_abandonment
from ragspan.step_texts import note_error
from ragspan.telemetry.anchors import current_anchor
from ragspan.telemetry.suppress import is_suppressed
from ragspan.throttled_log import ThrottledLog
from ragspan_llama_index.anchors import OPENINFERENCE, openinference_is_active
from ragspan_llama_index.answering import GENERATOR, kind_of
from ragspan_llama_index.assembly import RequestCapture
from ragspan_llama_index.callers import builds_an_index, evaluates
from ragspan_llama_index.grouping import Group
from ragspan_llama_index.noting import note_end, note_end_of_stream, note_start, note_texts
from ragspan_llama_index.open_requests import OpenRequests
from ragspan_llama_index.results import note_result, watch_chat
from ragspan_llama_index.roles import (
    ASKING,
    CALL,
    CHAT_WRITER,
    CHUNKS,
    MODEL,
    POSTPROCESSING,
    SEARCH,
    SYNTHESIS,
    TOOL,
    Role,
    role_of,
)
from ragspan_llama_index.settling import settle
from ragspan_llama_index.spans_apart import SpansApart
from ragspan_llama_index.steps import Place, Request, Step, only_reads
from ragspan_llama_index.streams import Stream
from ragspan_llama_index.watching import pulled
from ragspan_llama_index.workflows import note_work, note_work_done

_MAX_SPANS = 50_000  # of one request
_MAX_INTERRUPTED = 128
_TOKENS = frozenset({"LLMChatInProgressEvent", "LLMCompletionInProgressEvent"})
_ENDS_OF_STREAMS = frozenset({"LLMChatEndEvent", "LLMCompletionEndEvent"})
_DRAWN = frozenset({SEARCH, POSTPROCESSING, TOOL, MODEL})  # what becomes a span
_ANSWERING = frozenset({CALL, SYNTHESIS, CHUNKS})
_STANDS_FOR = {CHUNKS: SYNTHESIS, ASKING: MODEL}  # where nothing around it does


def _ignore(*_: object) -> None:
    pass


class RequestTracker:
    """The open requests of the process, for one sink.

    Args:
        sink: gets a capture of each request.
        on_request: is called when a request begins.
        max_open: requests that may be open at the same time; the oldest is handed over as aborted beyond.
        max_seconds: after which a request in which nothing new begins is handed over as aborted.
        sweep_seconds: at least between two looks for such requests.
    """

    def __init__(
        self,
        sink: RecordSink,
        *,
        on_request: Callable[[], None] = _ignore,
        max_open: int = 10_000,
        max_seconds: float = 3600.0,
        sweep_seconds: float = 60.0,
    ) -> None:
        self.sink = sink
        self._on_request = on_request
        self._live: dict[str, Place] = {}
        self._apart = SpansApart()
        self._open = OpenRequests(
            self._give_up, max_open=max_open, max_seconds=max_seconds, sweep_seconds=sweep_seconds
        )
        self._interrupted: deque[Request] = deque(maxlen=_MAX_INTERRUPTED)
        self._log = ThrottledLog()

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
            place = None if parent_id is None else self._live.get(parent_id)
            role = None if instance is None else role_of(id_, instance)
            if role is not None:
                self._enter_step(role, place, id_, bound_args.arguments, instance, parent_id, tags)
            elif place is not None:  # a part of the step around it
                if instance is None:
                    note_work(place[0], id_, bound_args.arguments)
                self._follow(id_, place)
            elif parent_id is not None and parent_id in self._apart:
                self._apart.add(id_)
        except Exception as problem:  # noqa: BLE001
            self.report(problem)

    def span_exit(
        self,
        id_: str,
        bound_args: inspect.BoundArguments,  # noqa: ARG002  the framework's signature
        instance: Any | None = None,  # noqa: ARG002  as above
        result: Any | None = None,
        **_: Any,
    ) -> None:
        try:
            place = self._live.get(id_)
            if place is None:
                self._apart.remove(id_)
                return
            request, step = place
            if step.span_id == id_:
                if not request.over:
                    step.ended_ns = time.time_ns()
                    self._note_end(request, step, result)
                    if step is request.root:
                        self._end_of_root(request, step, result)
                        return
                    if step.is_read_later():
                        return  # what reads it begins below this span, later
            elif id_ in request.at_work:
                note_work_done(request, id_, result)
            elif kind_of(result) == GENERATOR and not request.over:
                return  # the same
            self._live.pop(id_, None)
        except Exception as problem:  # noqa: BLE001
            self.report(problem)

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
                self._apart.remove(id_)
                return
            request, step = place
            error = GeneratorExit() if err is None else err
            request.problems.append(type(error).__name__)
            if not is_abandonment(error):
                request.at_work.pop(id_, None)
            if step.span_id == id_ and not request.over:
                step.ended_ns = time.time_ns()
                step.error = type(error).__name__
                if step.role in _DRAWN or step is request.root:
                    step.noted = note_error(error)
                self._note_error(request, step, error)
        except Exception as problem:  # noqa: BLE001
            self.report(problem)

    def event(self, event: Any, **_: Any) -> None:
        """A model's stream gave another token, or ended; or anything else, which the spans tell as well."""
        try:
            kind = type(event).__name__
            if kind in _TOKENS:
                place = self._live.get(event.span_id)
                if place is not None and place[1].streams and not place[1].inside_synthesis:
                    place[1].tokens.append(event.response.delta)
            elif kind in _ENDS_OF_STREAMS:
                place = self._live.get(event.span_id)
                if place is not None and place[1].streams:
                    note_end_of_stream(place[1], event.response)
        except Exception as problem:  # noqa: BLE001
            self.report(problem)

    def record_contexts(self, span_id: str, contexts: Sequence[RetrievedContext]) -> bool:
        """The program says that these contexts reach the prompt; False when the span is not followed."""
        place = self._live.get(span_id)
        if place is None or place[0].over:
            return False
        step = Step(None, "recorded", "", None)
        step.recorded = tuple(contexts)
        place[1].children.append(step)
        place[0].steps.append(step)
        return True

    def report(self, error: BaseException) -> None:
        """Something went wrong in a callback: it is logged, by its type, and the sink counts it where it can."""
        kind = type(error).__name__
        self._log.trouble(kind, "a callback of ragspan failed with %s", kind)
        getattr(self.sink, "count_error", _ignore)("callback")

    def close(self) -> None:
        """Forget everything that is open: streams go on, and nothing is recorded any more."""
        for request in self._open:
            self._close(request)
        self._live.clear()
        self._apart.clear()
        self._interrupted.clear()

    # Starts

    def _enter_step(
        self,
        role: Role,
        place: Place | None,
        span_id: str,
        arguments: Mapping[str, Any],
        instance: Any,
        parent_id: str | None,
        tags: Mapping[str, Any] | None,
    ) -> None:
        stream = pulled.get()
        if stream is not None and stream.place is not None and only_reads(place, stream.place):
            place = stream.place
        if place is None:
            place = self._place_at_top(role, span_id, parent_id)
            if place is None:
                if role in _ANSWERING and span_id not in self._apart:
                    self._new_request(role, span_id, arguments, instance, tags)
                return
        request, around = place
        if request.anchor_pending:
            request.find_anchor()
        if around.has_for_part(role):
            if role is CHUNKS and around.role is SYNTHESIS:
                note_texts(around, arguments)
            self._follow(span_id, place)
            return
        step = Step(_STANDS_FOR.get(role, role), type(instance).__name__, span_id, around)
        around.children.append(step)
        self._begin(request, step, role, arguments, instance)

    def _follow(self, span_id: str, place: Place) -> None:
        request = place[0]
        request.span_ids[span_id] = None
        self._live[span_id] = place
        if request.over or len(request.span_ids) > _MAX_SPANS:
            self._leave_out(request, span_id)

    def _leave_out(self, request: Request, span_id: str) -> None:
        """The request ended in another thread meanwhile, or it never does."""
        self._live.pop(span_id, None)
        if not request.over:
            self._give_up(request)

    def _begin(self, request: Request, step: Step, role: Role, arguments: Mapping[str, Any], instance: Any) -> None:
        request.last_start_ns = step.started_ns
        request.steps.append(step)
        if role is TOOL or ((role is MODEL or role is ASKING) and not step.inside_synthesis):
            request.asks_by_itself = True
        self._follow(step.span_id, (request, step))
        try:
            if role is CHAT_WRITER:
                watch_chat(request, step, instance, self._end_of_stream)
            else:
                note_start(step, role, arguments, instance)
        except Exception as problem:  # noqa: BLE001  whatever a program passes: the step is followed all the same
            self.report(problem)

    def _place_at_top(self, role: Role, span_id: str, parent_id: str | None) -> Place | None:
        """Where a span belongs whose outer one is not followed, if it is no request; it may have to be set apart."""
        if parent_id is not None and parent_id in self._apart:
            self._apart.add(span_id)  # it goes on in the background after the end of its request
            return None
        answer = enclosing_answer()
        if answer is not None and not is_suppressed():
            group = answer.part(self, lambda: Group(self._new_group(), close=self._close_group))
            return group.request, group.request.root
        if role is SEARCH or role is POSTPROCESSING:
            self._apart.add(span_id)  # a bare search is no request, and neither is what it asks on its way
        return None

    def _new_request(
        self, role: Role, span_id: str, arguments: Mapping[str, Any], instance: Any, tags: Mapping[str, Any] | None
    ) -> None:
        context = get_current()
        if context and is_suppressed(context):
            return
        if evaluates() if role is CALL else builds_an_index():
            self._apart.add(span_id)
            return
        self._on_request()
        root = Step(_STANDS_FOR.get(role, role), type(instance).__name__, span_id, None)
        request = Request(root)
        request.tags = active_instrument_tags.get() if tags is None else tags
        if context:
            request.anchor = current_anchor(context)
        self._open.add(request)
        self._begin(request, root, role, arguments, instance)
        request.is_resumed = root.is_run and arguments["start_event"] is None
        if root.is_run:
            request.answerer = type(instance)
            request.agent_name = getattr(instance, "__dict__", {}).get("name")
        if OPENINFERENCE in modules and openinference_is_active():
            request.anchor_pending = True
            request.find_anchor()

    def _new_group(self) -> Request:
        request = Request(Step(None, "answer", "", None), grouped=True)
        self._open.add(request)
        return request

    # Ends

    def _note_end(self, request: Request, step: Step, result: Any) -> None:
        try:
            note_end(step, result)
            if step.role is CALL or step.role is SYNTHESIS:
                note_result(request, step, result, self._end_of_stream)
            elif step.role is CHAT_WRITER and isinstance(step.answer, Stream):
                step.answer.complete()
        except Exception as problem:  # noqa: BLE001  whatever a program returns: the request ends all the same
            self.report(problem)

    def _note_error(self, request: Request, step: Step, error: BaseException) -> None:
        if step.role is SEARCH:
            step.find_span()
        if step.role is CHAT_WRITER and isinstance(step.answer, Stream):
            step.answer.fail(error)
        elif step is request.root:
            if is_abandonment(error):
                request.aborted = True
            else:
                request.error, request.noted = step.error, step.noted
            self._finish(request)

    def _end_of_root(self, request: Request, step: Step, result: Any) -> None:
        if request.anchor_pending:
            request.find_anchor()
        if step.is_run and result is None:
            request.aborted = True  # so ends a run that its caller cancels
        request.awaited = step.answer if isinstance(step.answer, Stream) else None
        if request.awaited is None or request.awaited.over:
            self._finish(request)

    def _end_of_stream(self, stream: Stream) -> None:
        place: Place | None = stream.place
        if place is not None and place[0].awaited is stream:
            self._finish(place[0])

    def _finish(self, request: Request) -> None:
        """Hand the request over, once, whoever comes first. Also called where a stream ends, in its reader's code."""
        try:
            capture = self._close(request)
            if capture is not None:
                self.sink.submit(capture)
        except KeyboardInterrupt:
            raise
        except BaseException as problem:  # noqa: BLE001  whatever a sink raises
            self.report(problem)

    def _close(self, request: Request) -> RequestCapture | None:
        """The request is over: forget its spans and make the capture; None when somebody else did."""
        try:
            request.unfinished.pop()
        except IndexError:
            return None
        request.ended_ns = time.time_ns()
        request.over = True
        self._open.remove(request)
        for span_id in request.span_ids:
            self._live.pop(span_id, None)
        self._apart.add_ended(request.span_ids)
        for stream in request.streams:
            stream.forget()
        size = settle(request)
        if request.is_resumed:
            request.earlier = tuple(self._interrupted)
        if request.is_interrupted:
            self._interrupted.append(request)
        return RequestCapture(request, size_hint=size)

    def _close_group(self, request: Request) -> RequestCapture:
        return self._close(request) or RequestCapture(request, size_hint=0)

    def _give_up(self, request: Request) -> None:
        request.aborted = True
        if request.grouped:
            self._close(request)  # the block hands it over
        else:
            self._finish(request)
