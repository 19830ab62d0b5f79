"""Makes the tree of a request from its log, as callbacks noted it; pure, and run in the worker.

An event of a kind that is not known here, as a newer integration may note, is ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ragspan.capturing.log import Event, EventKind, RequestLog, RunKey, nested_logs
from ragspan.records import RagRecord, SpanAnchor
from ragspan.request.contents import Document, FilledPrompt, PayloadMessage, documents_in, json_in
from ragspan.request.record_making import record_of
from ragspan.request.tree import (
    ModelStep,
    RequestTree,
    RerankStep,
    SearchStep,
    SeenDocument,
    Step,
    SynthesisStep,
    ToolStep,
)
from ragspan.safe_copy import Snapshot

# What is noted about a step when it begins; of a chain it is its name alone.


class ToolStart(NamedTuple):
    name: str
    call_id: Any = None


class SearchStart(NamedTuple):
    name: str
    metadata: Mapping[str, Any] = {}
    span: SpanAnchor | None = None


class ModelStart(NamedTuple):
    name: str
    model: Any = None
    provider: Any = None
    rewritten: Sequence[tuple[Document, str]] = ()
    beside: Snapshot = None


class RerankStart(NamedTuple):
    """The payload is the documents that it is given."""

    name: str
    query: str | None = None
    model: str | None = None
    top_k: int | None = None
    is_filter: bool = False


class SynthesisStart(NamedTuple):
    """The payload is the documents that it is given."""

    name: str


_STEPS: Mapping[type, type[Step]] = {
    ToolStart: ToolStep,
    SearchStart: SearchStep,
    ModelStart: ModelStep,
    RerankStart: RerankStep,
    SynthesisStart: SynthesisStep,
}


def record_of_log(log: RequestLog) -> RagRecord | None:
    """The record of a request; None if it answered nothing."""
    return record_of(tree_of(log))


def tree_of(log: RequestLog, around: Mapping[RunKey, Step] | None = None) -> RequestTree:
    """The tree of a request, with those of the interrupted requests that it continues.

    Args:
        log: of the request, or of what happened inside another one.
        around: by its outermost runs, the steps of that one that they are in.
    """
    before = None
    for earlier in log.earlier:
        before = _Events(earlier, before, {}).tree
    return _Events(log, before, around or {}).tree


class _Events:
    """Reads the events of one log into a tree."""

    def __init__(self, log: RequestLog, before: RequestTree | None, around: Mapping[RunKey, Step]) -> None:
        about = log.about
        self._around = around
        self.tree = RequestTree(
            started_ns=log.started_ns,
            ended_ns=log.ended_ns,
            framework=about.get("framework", "langchain"),
            run_type=about.get("run_type"),
            run_id=None if about.get("run_id") is None else str(about["run_id"]),
            tags=about.get("tags", ()),
            metadata=about.get("metadata", {}),
            anchor=log.anchor,
            grouped=log.grouped,
            abandoned=log.abandoned,
            delivered=bool(about.get("delivered")),
            before=before,
        )
        self._steps: dict[RunKey, Step] = {}
        self._copies: dict[RunKey, int] = {}  # how many times the handler is in the run's list of handlers
        readers: Mapping[EventKind, Callable[[Event], None]] = {
            EventKind.START: self._start,
            EventKind.AGAIN: self._again,
            EventKind.END: self._end,
            EventKind.READ: self._end,
            EventKind.ERROR: self._error,
            EventKind.INTERRUPT: self._interrupt,
            EventKind.CONTEXTS: self._contexts,
            EventKind.DOCUMENTS: self._documents,
            EventKind.FILLED: self._filled,
            EventKind.REREAD: self._reread,
        }
        for event in log.history:
            if event.kind in readers:
                readers[event.kind](event)
        for key, stream in log.streams.items():
            step = self._steps.get(key)
            if isinstance(step, ModelStep):
                step.tokens = stream.tokens[:: self._copies.get(key, 1)]
                step.first_token_ns, step.last_chunk = stream.first_ns, stream.last_chunk
        _join_models(self.tree)
        _add_call_ids(self.tree)
        for inner in nested_logs(log):
            self.tree.take_in(inner.log.tree_inside(inner.steps_around(self._steps)))

    def _start(self, event: Event) -> None:
        parent = self._around.get(event.run) if event.parent is None else self._steps.get(event.parent)
        around: dict[str, Any] = {"parent": parent, "started_ns": event.time_ns, "inputs": event.payload}
        if type(event.about) in _STEPS:
            step = _STEPS[type(event.about)](**event.about._asdict(), **around)
        else:
            step = Step(name=event.about, **around)
        if isinstance(step, RerankStep):
            step.given = _seen_in(event.payload)
        self._steps[event.run] = self.tree.begin(step)

    def _again(self, event: Event) -> None:
        self._copies[event.run] = self._copies.get(event.run, 1) + 1

    def _end(self, event: Event) -> None:
        step = self._steps.get(event.run)
        if step is None or step.ended_ns:
            return
        late_inputs = None
        if isinstance(step, ModelStep):
            step.provider_metadata = event.about or ()
        elif isinstance(step, SearchStep):
            step.span = step.span or event.about
        elif isinstance(step, RerankStep):
            step.found = _seen_in(event.payload)
        elif isinstance(step, ToolStep):
            if step.call_id is None and isinstance(event.payload, PayloadMessage):
                step.call_id = event.payload.call_id  # langchain-core before 1.1.2 does not tell it at the start
        else:
            late_inputs = event.about
        self.tree.end(step, event.time_ns, event.payload, late_inputs)

    def _error(self, event: Event) -> None:
        step = self._steps.get(event.run)
        if step is None:
            return
        if isinstance(step, SearchStep):
            step.span = step.span or event.about
        late_inputs = None if isinstance(event.about, SpanAnchor) else event.about
        self.tree.fail(step, event.time_ns, event.payload, late_inputs)

    def _interrupt(self, event: Event) -> None:
        if event.run in self._steps:
            self.tree.interrupted.append(self._steps[event.run])

    def _contexts(self, event: Event) -> None:
        self.tree.recorded += event.payload
        self.tree.found_nothing |= not event.payload

    def _documents(self, event: Event) -> None:
        """The program shows what it found: that is a step of its own."""
        self._add(event, event.about, event.payload)

    def _filled(self, event: Event) -> None:
        """A step filled a template with these values, for the models inside it: that is a step of its own."""
        around = self._steps.get(event.run)
        if around is not None:
            template = self.tree.begin(
                Step(name="template", parent=around, started_ns=event.time_ns, inputs=event.payload)
            )
            self.tree.end(template, event.time_ns, FilledPrompt())

    def _reread(self, event: Event) -> None:
        """Documents that the program had changed in place until now: models may have been given the new texts."""
        for step in self.tree.all_of(ModelStep):
            step.rewritten = [*step.rewritten, *event.payload]

    def _add(self, event: Event, name: str, output: Snapshot) -> None:
        around = self._steps.get(event.run)
        if around is not None:
            step = self.tree.begin(Step(name=name, parent=around, started_ns=event.time_ns))
            self.tree.end(step, event.time_ns, output)


def _seen_in(documents: Snapshot) -> list[SeenDocument]:
    pairs = [pair for found in documents_in(documents) for pair in found]
    return [SeenDocument(document, rank, score) for rank, (document, score) in enumerate(pairs)]


def _join_models(tree: RequestTree) -> None:
    """A call of a model that another one consists of is not a call of its own; it may show what was written out for it."""
    inner: dict[Step, list[ModelStep]] = {}
    for step in tree.all_of(ModelStep):
        if isinstance(step.parent, ModelStep):
            inner.setdefault(step.parent, []).append(step)
    left_out: set[Step] = set()
    for outer, steps in inner.items():
        if isinstance(outer, ModelStep) and len(steps) == 1:
            step = steps[0]
            if _writes_out(outer.messages, step.messages):  # in one text, in which nobody knows whose they are
                step.inputs = [replace(part, unread=()) for part in outer.messages]
            step.reply = step.reply or outer.reply
            step.tokens = step.tokens or outer.tokens
            step.put_in(outer.parent)
            left_out.add(outer)
    if left_out:
        tree.steps = [step for step in tree.steps if step not in left_out]
        tree.moments = [moment for moment in tree.moments if moment[0] not in left_out]


def _writes_out(given: Sequence[PayloadMessage], written: Sequence[PayloadMessage]) -> bool:
    """Whether a model was given these messages as one text."""
    prompt, at = "\n".join(part.text for part in written), 0
    for part in given:
        at = prompt.find(part.text.strip(), at)
        if at < 0:
            return False
        at += len(part.text.strip())
    return bool(given)


def _add_call_ids(tree: RequestTree) -> None:
    """Tell each tool the id of the request that it answers, where the framework does not hand it over."""
    tools = [tool for tool in tree.all_of(ToolStep) if tool.call_id is None]
    if not tools:
        return
    taken = {tool.call_id for tool in tree.all_of(ToolStep)}
    asked = [(step, call) for step in tree.all_of(ModelStep) if step.reply for call in step.reply.calls or ()]
    asked = [(step, call) for step, call in asked if call.id is not None and call.id not in taken]
    for tool in tools:
        for entry in asked:
            model, call = entry
            is_same = call.name == tool.name and _read(call.arguments) == _read(tool.inputs)
            if is_same and model.started_ns <= tool.started_ns:
                asked.remove(entry)
                tool.call_id = call.id
                break


def _read(arguments: Any) -> Any:
    """Arguments that a provider may have as JSON."""
    return json_in(arguments) or arguments if isinstance(arguments, str) else arguments
