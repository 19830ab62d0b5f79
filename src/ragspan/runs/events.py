"""Makes the tree of a request from its log, as callbacks noted it; pure, and run in the worker.

An event of a kind that is not known here, as a newer integration may note, is ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ragspan.capturing.log import Event, EventKind, RequestLog, RunKey, inner_logs
from ragspan.capturing.snapshots import Snapshot
from ragspan.records import RagRecord, SpanAnchor
from ragspan.runs.contents import Document, PayloadMessage
from ragspan.runs.record_making import make_record
from ragspan.runs.tree import ModelStep, RequestTree, SearchStep, Step, ToolStep

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


def record_of_log(log: RequestLog) -> RagRecord | None:
    """The record of a request; None if it answered nothing."""
    return make_record(tree_of(log))


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
            run_id=str(about["run_id"]) if "run_id" in about else None,
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
            EventKind.ERROR: self._error,
            EventKind.INTERRUPT: self._interrupt,
            EventKind.CONTEXTS: self._contexts,
            EventKind.DOCUMENTS: self._documents,
        }
        for event in log.history:
            if event.kind in readers:
                readers[event.kind](event)
        for key, stream in log.streams.items():
            step = self._steps.get(key)
            if isinstance(step, ModelStep):
                step.tokens = stream.tokens[:: self._copies.get(key, 1)]
                step.first_token_ns, step.last_chunk = stream.first_ns, stream.last_chunk
        for inner in inner_logs(log):
            self.tree.take_in(inner.log.tree_inside(inner.steps_around(self._steps)))

    def _start(self, event: Event) -> None:
        parent = self._around.get(event.run) if event.parent is None else self._steps.get(event.parent)
        around: dict[str, Any] = {"parent": parent, "started_ns": event.time_ns, "inputs": event.payload}
        self._steps[event.run] = self.tree.begin(_made(event.about, around))

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
        elif not isinstance(step, ToolStep):
            late_inputs = event.about
        if isinstance(step, ToolStep) and step.call_id is None and isinstance(event.payload, PayloadMessage):
            step.call_id = event.payload.call_id  # langchain-core before 1.1.2 does not tell it at the start
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
        around = self._steps.get(event.run)
        if around is not None:
            step = self.tree.begin(Step(name=event.about, parent=around, started_ns=event.time_ns))
            self.tree.end(step, event.time_ns, event.payload)


def _made(about: Any, around: Mapping[str, Any]) -> Step:
    """The step of a start."""
    if isinstance(about, ModelStart):
        return ModelStep(**about._asdict(), **around)
    if isinstance(about, SearchStart):
        return SearchStep(**about._asdict(), **around)
    if isinstance(about, ToolStart):
        return ToolStep(**about._asdict(), **around)
    return Step(name=about, **around)
