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

from ragspan.capturing import (
    OPAQUE,
    EventKind,
    Opaque,
    OpenRequests,
    OuterRun,
    RequestLog,
    Snapshot,
    TokenStream,
    add_request_finder,
)
from ragspan.messages import ErrorReport, note_error
from ragspan.process import in_use
from ragspan.records import RecordSink, RetrievedContext
from ragspan.request import (
    INTERRUPTS,
    MAX_SAVED_STATES,
    NO_INPUT_YET,
    ModelStart,
    SearchStart,
    ToolStart,
    documents_in,
    record_of_log,
    tree_of,
)
from ragspan.safe_copy import (
    MAX_ENTRIES,
    items_of,
    kept_entries,
    plain_scalar,
    text_keyed,
    text_of,
    texts_among,
)
from ragspan_langchain.interruptions import Interruptions
from ragspan_langchain.payloads import (
    PROMPT,
    SNAPSHOTS,
    end_of_stream,
    filled_prompt,
    rewritten_documents,
    take_each,
    take_filled,
    take_found,
    take_prompt,
    take_reply,
)
from ragspan_langchain.running import (
    IS_BLIND,
    OPENINFERENCE,
    RunId,
    enclosing_run_id,
    note_node,
    openinference,
    openinference_anchor,
    tokens_are_delivered,
)

_START, _END, _ERROR = EventKind.START, EventKind.END, EventKind.ERROR  # members are slow to look up


def _key_of(run_id: RunId) -> int:
    """The number of a run's id: hashing a UUID is a Python call. LangServe gives ids as text."""
    return run_id.int if type(run_id) is UUID else hash(run_id)


class EventRecorder:
    """Notes the events of all requests of one sink; handlers of the same sink share it.

    Its methods are boundaries: an error inside is counted and costs a score, never an answer.

    Args:
        sink: gets a capture of each request.
    """

    def __init__(self, sink: RecordSink) -> None:
        self.requests: OpenRequests[RequestLog] = OpenRequests(sink, record_of_log, tree_of, on_end=_let_go)
        self._live = self.requests.live
        self._interruptions = in_use.only(Interruptions)

    def start(
        self, kind: str, run_id: RunId, parent_id: RunId | None, given: Any, serialized: Any, about: Mapping[str, Any]
    ) -> None:
        """A chain, tool, retriever or model starts."""
        try:
            key = run_id.int if type(run_id) is UUID else hash(run_id)
            known = self._live.get(key)
            if known is not None:
                known.note(EventKind.AGAIN, key)
                return
            parent = None if parent_id is None else parent_id.int if type(parent_id) is UUID else hash(parent_id)
            log = None if parent is None else self._live.get(parent)
            if log is None:
                parent, log = self._place_of_top(key, parent)
                if log is None:
                    return
            if parent is None:
                _note_top(log, key, run_id, about)
            elif log.span_finder is not None:
                log.find_span()
            self.requests.follow(log, key, log)
            name = about.get("name")
            details: Any = name if type(name) is str else _name_in(serialized, kind)
            if kind == "chain":
                if IS_BLIND:
                    note_node(run_id, about)
                is_template = about.get("run_type") == "prompt"
                payload = SNAPSHOTS.take(given, log, whole=parent is None or is_template or _wants_state(log))
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
            is_top = key == log.root or (log.grouped and key in log.about["tops"])
            payload, about = OPAQUE, None
            try:
                if kind == "chain":
                    payload = SNAPSHOTS.take(_output_of(output) if is_top else output, log, whole=is_top)
                else:
                    payload, about = _ENDS[kind](log, run_id, output)
                is_template = payload is PROMPT
                if is_template:
                    payload = filled_prompt(output, log)
                if inputs is not None and (is_top or is_template or payload == []):
                    about = SNAPSHOTS.take(inputs, log, whole=is_top or is_template)
                    if is_top:
                        self._note_inputs(log, about)
            finally:
                over = _ERROR if type(payload) is ErrorReport else _END
                log.events.append((over, key, None, time_ns(), payload, about))
                if key == log.root:
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
            stream.tokens.append(token if type(token) is str else SNAPSHOTS.take(token, log))
            stream.last_chunk = chunk
        except Exception as problem:  # noqa: BLE001
            self.requests.report(problem)

    def note(self, kind: EventKind, run_id: RunId | None, given: Any, about: str) -> None:
        """Something else happens in a run: what was given is noted, if there are documents in it."""
        try:
            log = None if run_id is None else self._live.get(_key_of(run_id))
            if log is not None and run_id is not None:
                payload = SNAPSHOTS.take(given, log, whole=False)
                if documents_in(payload):
                    log.note(kind, _key_of(run_id), payload=payload, about=about)
        except Exception as problem:  # noqa: BLE001
            self.requests.report(problem)

    def interrupt(self, run_id: RunId | None) -> None:
        """A graph says that it stops to wait for a person."""
        try:
            log = None if run_id is None else self._live.get(_key_of(run_id))
            if log is not None and run_id is not None:
                log.about["interrupted"] = True
                log.note(EventKind.INTERRUPT, _key_of(run_id))
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

    def _place_of_top(self, key: int, parent: int | None) -> tuple[int | None, RequestLog | None]:
        """The run around one whose parent is not live, and the log of its request, if there are any."""
        enclosing = enclosing_run_id()  # the callbacks may have been passed to an inner call once more
        around = None if enclosing is None else _key_of(enclosing)
        log = None if around is None else self._live.get(around)
        if log is not None:
            return around, log
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


def _let_go(log: RequestLog) -> None:
    """Keep of the framework's objects what the record needs."""
    if log.streams:
        for stream in list(log.streams.values()):
            stream.last_chunk = end_of_stream(stream.last_chunk)
    if log.about.get("filled"):
        take_filled(log.about["filled"], log)


def _name_in(serialized: Any, default: str) -> str:
    own = _entries(serialized)
    return text_of(own.get("name")) or text_of((items_of(own.get("id")) or [default])[-1]) or default


def _note_top(log: RequestLog, key: int, run_id: RunId, about: Mapping[str, Any]) -> None:
    """Note a run that nothing is around."""
    if log.grouped:
        log.about.setdefault("tops", set()).add(key)
        return
    log.root = key
    noted = log.about
    noted["framework"] = "langchain"
    noted["run_id"] = run_id
    noted["run_type"] = about.get("run_type")
    tags, metadata = about.get("tags"), about.get("metadata")
    if type(tags) is not list or tags:
        noted["tags"] = tags = texts_among((items_of(tags) or ())[:MAX_ENTRIES])
        log.texts.update(zip(map(id, tags), tags, strict=True))
        log.parts += len(tags)
    if type(metadata) is not dict or metadata:
        noted["metadata"] = metadata = kept_entries(metadata, texts=log.texts)
        log.parts += 3 * len(metadata)
    if OPENINFERENCE in sys.modules and openinference() is not None:
        log.look_for_span(functools.partial(openinference_anchor, run_id))


def _wants_state(log: RequestLog) -> bool:
    """Whether a step's input may have to tell what the request was called with."""
    return "asked" not in log.about and len(log.events) < 4 * MAX_SAVED_STATES


def _output_of(value: Any) -> Any:
    """What a call returned. The client of a remote program returns all events of a stream; the last one has the output."""
    if type(value) is list and value and type(value[-1]) is dict:
        last = text_keyed(value[-1])
        if "event" in last:
            data = last.get("data")
            return _entries(data).get("output")
    return value


# What the starts and ends of the other kinds of run show


def _tool(log: RequestLog, _: RunId, given: Any, name: str, about: Mapping[str, Any]) -> tuple[Snapshot, ToolStart]:
    return SNAPSHOTS.take(given, log), ToolStart(name, text_of(about.get("tool_call_id")))


def _retriever(
    log: RequestLog, run_id: RunId, given: Any, name: str, about: Mapping[str, Any]
) -> tuple[Snapshot, SearchStart]:
    metadata = _entries(about.get("metadata"))
    known: Mapping[str, Any] = {}
    if not _OF_SEARCHES.isdisjoint(metadata):
        known = {key: plain_scalar(metadata[key]) for key in _OF_SEARCHES if key in metadata}
    return SNAPSHOTS.take(given, log), SearchStart(name, known, openinference_anchor(run_id))


def _model(log: RequestLog, _: RunId, given: Any, name: str, about: Mapping[str, Any]) -> tuple[Snapshot, ModelStart]:
    metadata, invoked_with = _entries(about.get("metadata")), _entries(about.get("invocation_params"))
    if "delivered" not in log.about and tokens_are_delivered():
        log.about["delivered"] = True
    beside: Any = None
    if "documents" in invoked_with or "source_documents" in invoked_with:
        beside = next((invoked_with[key] for key in _BESIDE if invoked_with.get(key) is not None), None)
    if beside is not None:
        items = items_of(beside)
        beside = SNAPSHOTS.take(beside, log) if items is None else take_each(items, log)
    model, provider = text_of(metadata.get("ls_model_name")), text_of(metadata.get("ls_provider"))
    start = ModelStart(name, model, provider, rewritten_documents(log), beside)
    return take_prompt(given, log), start


_OF_SEARCHES = frozenset({"data_source_id", "top_k"})
_BESIDE = ("documents", "source_documents")  # the latter of Cohere's chat before 2024


def _entries(given: Any) -> Mapping[str, Any]:
    if type(given) is dict:
        return text_keyed(given) if given else _NOTHING
    return text_keyed(given) if given is not None and issubclass(type(given), dict) else _NOTHING


_NOTHING: Mapping[str, Any] = {}


def _error(log: RequestLog, run_id: RunId, error: BaseException) -> tuple[Snapshot, Any]:
    """The error itself is not kept: it would keep the request's frames alive."""
    noted = note_error(error)
    if _key_of(run_id) == log.root:
        log.about["failed"] = True
    elif noted.name in INTERRUPTS:
        log.about["interrupted"] = True
    return noted, openinference_anchor(run_id)


_STARTS = {"tool": _tool, "retriever": _retriever, "model": _model}
_ENDS: Mapping[str, Callable[[RequestLog, RunId, Any], tuple[Snapshot, Any]]] = {
    "tool": lambda log, _, output: (SNAPSHOTS.take(output, log), None),
    "retriever": lambda log, run_id, output: (take_found(output, log), openinference_anchor(run_id)),
    "model": lambda log, _, output: take_reply(output, log),
    "error": _error,
}
