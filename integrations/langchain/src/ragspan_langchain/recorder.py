"""Notes the callbacks' events in the log of their request, on the request path.

A run belongs to the request of its parent, and so does an inner call that gets the callbacks again. Events after the end of
their request are ignored. `ragspan.capturing.open_requests` has the other guarantees.
"""

from __future__ import annotations

import functools
import sys
import weakref
from collections.abc import Callable, Mapping, Sequence
from time import time_ns
from typing import Any
from uuid import UUID

from ragspan.capturing import EventKind, OpenRequests, OuterRun, RequestLog, TokenStream, add_request_finder
from ragspan.messages import ErrorReport, note_error
from ragspan.process import in_use
from ragspan.records import RecordSink, RetrievedContext
from ragspan.request import (
    INTERRUPTS,
    NO_INPUT_YET,
    FilledPrompt,
    ModelStep,
    SearchStep,
    StepStart,
    ToolStep,
    documents_in,
    record_of_log,
    tree_of,
)
from ragspan.safe_copy import (
    MAX_ENTRIES,
    OPAQUE,
    Opaque,
    Snapshot,
    items_of,
    kept_entries,
    text_keyed,
    text_of,
    texts_among,
)
from ragspan_langchain.payloads import (
    PROMPT,
    end_of_stream,
    messages_of,
    rewritten_documents,
    take,
    take_each,
    take_found,
    take_reply,
)
from ragspan_langchain.running import (
    LOSES_CONTEXT,
    OPENINFERENCE,
    RunId,
    context_of_graph,
    enclosing_run_id,
    note_node,
    openinference_anchor,
    tokens_are_delivered,
)

_START, _END, _ERROR = EventKind.START, EventKind.END, EventKind.ERROR  # members are slow to look up
_WITH_STATES = 20  # events, in which a step's input may have to tell what the request was called with


def _key_of(run_id: RunId) -> int:
    """The number of a run's id: hashing a UUID is a Python call. LangServe gives ids as text."""
    return run_id.int if type(run_id) is UUID else hash(run_id)


class Interruptions:
    """Interrupted requests by the thread id of their conversation: what they found counts for the answer after them.

    The graph's saved state often holds the documents only as text, and the answer may be a draft. So the logs are kept, with
    texts and no documents, within bounds, until the graph has gone on or the user asks something new; and outside of the
    recorder, because a program may make a handler for each request.
    """

    max_bytes = 50_000_000

    def __init__(self) -> None:
        self.waiting: dict[Any, tuple[RequestLog, ...]] = {}

    def resume(self, log: RequestLog, inputs: Snapshot) -> None:
        """Give a request that goes on what was found before; a new question makes it void."""
        if not self.waiting:
            return
        thread = log.about.get("metadata", {}).get("thread_id")
        if inputs is None or isinstance(inputs, Opaque):
            log.earlier = self.waiting.get(thread, ())
        else:
            self.waiting.pop(thread, None)

    def settle(self, log: RequestLog) -> None:
        """Remember a request that was interrupted; forget one that went on to its end."""
        is_waiting = "interrupted" in log.about
        if not is_waiting and (not log.earlier or log.abandoned or "failed" in log.about):
            return
        thread = log.about.get("metadata", {}).get("thread_id")
        self.waiting.pop(thread, None)  # the newest goes to the end
        if is_waiting and thread is not None:
            self.waiting[thread] = (*log.earlier, log)
        while sum(each.bytes for logs in list(self.waiting.values()) for each in logs) > self.max_bytes:
            self.waiting.pop(next(iter(list(self.waiting))), None)


class EventRecorder:
    """Notes the events of all requests of one sink; handlers of the same sink share it.

    Its methods are boundaries: an error inside is counted and costs a score, never an answer.

    Args:
        sink: gets a capture of each request.
    """

    def __init__(self, sink: RecordSink) -> None:
        self.requests: OpenRequests[RequestLog] = OpenRequests(sink, record_of_log, tree_of, on_end=_release_framework)
        self._live = self.requests.live
        self._interruptions = in_use.only(Interruptions)

    def start(self, kind: str, run_id: RunId, given: Any, serialized: Any, about: Mapping[str, Any]) -> None:
        """A chain, tool, retriever or model starts; `about` is what else LangChain says, also which run is around it."""
        try:
            live, parent_id = self._live, about.get("parent_run_id")
            key = run_id.int if type(run_id) is UUID else hash(run_id)
            if key in live:
                live[key].note(EventKind.AGAIN, key)
                return
            parent = None if parent_id is None else parent_id.int if type(parent_id) is UUID else hash(parent_id)
            log = None if parent is None else live.get(parent)
            if log is None:
                parent, log = self._place_of_top(key, parent)
                if log is None:
                    return
            if parent is None:
                _note_top(log, key, run_id, about)
            elif log.span_finder is not None:
                log.find_span()
            self.requests.follow(log, key, log)
            details: Any = about.get("name") or text_of(text_keyed(serialized).get("name")) or kind
            if kind == "chain":
                if LOSES_CONTEXT:
                    note_node(run_id, about)
                may_be_asked = parent is None or ("asked" not in log.about and len(log.events) < _WITH_STATES)
                payload = take(given, log, whole=may_be_asked or about.get("run_type") == "prompt")
            else:
                payload, details = _STARTS[kind](log, run_id, given, details, about)
            if parent is None:
                self._note_inputs(log, payload)
            log.events.append((_START, key, parent, time_ns(), payload, details))
        except Exception as problem:  # noqa: BLE001
            self.requests.report(problem)

    def end(self, kind: str, run_id: RunId, output: Any, inputs: Any = None) -> None:
        """A chain, tool, retriever or model ends or fails; a stream's real input comes with its end."""
        try:
            key = run_id.int if type(run_id) is UUID else hash(run_id)
            log = self._live.pop(key, None)
            if log is None or log.over:
                return
            is_root = key == log.root
            is_top = is_root or (log.grouped and key in log.about["tops"])
            payload, about = OPAQUE, None
            try:
                if kind == "chain":
                    payload = take(output, log, whole=is_top)
                    if payload is PROMPT:
                        payload = FilledPrompt(take_each(messages_of(output), log))
                else:
                    payload, about = _ENDS[kind](log, run_id, output)
                if inputs is not None and (is_top or type(payload) is FilledPrompt or payload == []):
                    about = take(inputs, log, whole=is_top or payload != [])
                    if is_top:
                        self._note_inputs(log, about)
            finally:
                over = _ERROR if type(payload) is ErrorReport else _END
                log.events.append((over, key, None, time_ns(), payload, about))
                if is_root:
                    if log.span_finder is not None:
                        log.find_span()
                    self.requests.finish(log)
                    self._interruptions.settle(log)
        except Exception as problem:  # noqa: BLE001
            self.requests.report(problem)

    def new_token(self, token: Any, *, chunk: Any = None, run_id: RunId, **_: Any) -> None:
        """A model gives another token. The parameters are those of LangChain's `on_llm_new_token`."""
        try:
            key = run_id.int if type(run_id) is UUID else hash(run_id)
            log = self._live.get(key)
            if log is None:
                return
            stream = log.streams.get(key) or log.streams.setdefault(key, TokenStream())
            stream.tokens.append(token if type(token) is str else take(token, log))
            stream.last_chunk = chunk
        except Exception as problem:  # noqa: BLE001
            self.requests.report(problem)

    def note_shown(self, run_id: RunId, given: Any, name: str) -> None:
        """The program shows something in a run: it is noted, if there are documents in it."""
        try:
            log = self._live.get(_key_of(run_id))
            if log is not None and documents_in(payload := take(given, log, whole=False)):
                log.note(EventKind.DOCUMENTS, _key_of(run_id), payload=payload, about=name)
        except Exception as problem:  # noqa: BLE001
            self.requests.report(problem)

    def record_contexts(self, run_id: RunId, contexts: Sequence[RetrievedContext]) -> bool:
        """The program says that these contexts reach the prompt; False when the run is not followed."""
        log = self._live.get(_key_of(run_id))
        if log is None:
            return False
        for context in contexts:
            log.count(context.text)
        log.note(EventKind.CONTEXTS, _key_of(run_id), payload=tuple(contexts))
        return True

    def _note_inputs(self, log: RequestLog, inputs: Snapshot) -> None:
        """Note what a request was called with, if it is known now; else its first steps show it."""
        if inputs != NO_INPUT_YET:
            if inputs is not None and not isinstance(inputs, Opaque):
                log.about["asked"] = True
            self._interruptions.resume(log, inputs)

    def around(self, run_id: RunId) -> OuterRun | None:
        """A run with its request, if it is live."""
        log = self._live.get(_key_of(run_id))
        return None if log is None else OuterRun(log, _key_of(run_id))

    def _place_of_top(self, key: int, parent: int | None) -> tuple[Any, RequestLog | None]:
        """The run around one whose parent is not live, and the log of its request, if there are any."""
        enclosing = enclosing_run_id()  # the callbacks may have been passed to an inner call once more
        around = None if enclosing is None else self.around(enclosing)
        if around is not None:
            return around.run, around.log
        if parent is not None and self.requests.ended.inherit(key, parent):
            return None, None  # what goes on in the background is ignored, and so is what it calls
        return None, self.requests.begin(key, self.requests.within())


_recorders: weakref.WeakValueDictionary[int, EventRecorder] = weakref.WeakValueDictionary()


def recorder_for(sink: RecordSink) -> EventRecorder:
    """The recorder of this sink.

    It is found by the sink's identity, which stays the sink's as long as the recorder lives and holds it. Handlers made
    one per request thus see each other's runs, and a request that meets two of them is still one record.
    """
    recorder = _recorders.get(id(sink))
    return recorder or _recorders.setdefault(id(sink), EventRecorder(sink))


def _request_around(sink: RecordSink) -> OuterRun | None:
    """The run that the caller is in, of a request for this sink."""
    run_id = enclosing_run_id()
    recorder = None if run_id is None else _recorders.get(id(sink))
    return None if recorder is None or run_id is None else recorder.around(run_id)


add_request_finder(_request_around)


def _release_framework(log: RequestLog) -> None:
    """Keep of the framework's objects what the record needs."""
    if log.streams:
        for stream in list(log.streams.values()):
            stream.last_chunk = end_of_stream(stream.last_chunk)


def _note_top(log: RequestLog, key: int, run_id: RunId, about: Mapping[str, Any]) -> None:
    """Note a run that nothing is around."""
    if log.grouped:
        log.about.setdefault("tops", set()).add(key)
        return
    log.root = key
    noted = log.about
    noted |= {"framework": "langchain", "run_id": run_id, "run_type": about.get("run_type")}
    tags, metadata = about.get("tags"), about.get("metadata")
    if type(tags) is not list or tags:
        noted["tags"] = tags = texts_among((items_of(tags) or ())[:MAX_ENTRIES])
        log.texts.update(zip(map(id, tags), tags, strict=True))
        log.parts += len(tags)
    if type(metadata) is not dict or metadata:
        noted["metadata"] = metadata = kept_entries(metadata, texts=log.texts)
        log.parts += 3 * len(metadata)
    if OPENINFERENCE in sys.modules:
        log.span_finder = functools.partial(openinference_anchor, run_id)
        log.find_span()


# What the starts and ends of the other kinds of run show


def _model(log: RequestLog, _: RunId, given: Any, name: str, about: Mapping[str, Any]) -> tuple[Snapshot, StepStart]:
    metadata, invoked_with = text_keyed(about.get("metadata")), text_keyed(about.get("invocation_params"))
    if "delivered" not in log.about and tokens_are_delivered():
        log.about["delivered"] = True
    if "context" not in log.about and (context := context_of_graph()) is not None:
        log.about["context"] = True
        log.note(EventKind.DOCUMENTS, _key_of(about["parent_run_id"]), None, take(context, log, whole=False), "context")
    beside: Any = invoked_with.get("documents")
    if beside is not None:
        beside = take_each(items_of(beside) or [beside], log)
    model, provider = text_of(metadata.get("ls_model_name")), text_of(metadata.get("ls_provider"))
    known = {"model": model, "provider": provider, "rewritten": rewritten_documents(log), "beside": beside}
    return take_each(given, log), StepStart(ModelStep, name, known)


def _error(log: RequestLog, run_id: RunId, error: BaseException) -> tuple[Snapshot, Any]:
    """The error itself is not kept: it would keep the request's frames alive."""
    noted = note_error(error)
    if _key_of(run_id) == log.root:
        log.about["failed"] = True
    elif noted.name in INTERRUPTS:
        log.about["interrupted"] = True
    return noted, openinference_anchor(run_id)


_STARTS: Mapping[str, Callable[[RequestLog, RunId, Any, str, Mapping[str, Any]], tuple[Snapshot, Any]]] = {
    "tool": lambda log, _, given, name, about: (
        take(given, log),
        StepStart(ToolStep, name, {"call_id": text_of(about.get("tool_call_id"))}),
    ),
    "retriever": lambda log, run_id, given, name, _: (
        take(given, log),
        StepStart(SearchStep, name, {"span": openinference_anchor(run_id)}),
    ),
    "model": _model,
}
_ENDS: Mapping[str, Callable[[RequestLog, RunId, Any], tuple[Snapshot, Any]]] = {
    "tool": lambda log, _, output: (take(output, log), None),
    "retriever": lambda log, run_id, output: (take_found(output, log), openinference_anchor(run_id)),
    "model": lambda log, _, output: take_reply(output, log),
    "error": _error,
}
