"""Makes the tree of a request from its log, as callbacks noted it; pure, and run in the worker.

An event of a kind that is not known here, as a newer integration may note, is ignored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ragspan.capturing.log import EventKind, RequestLog, RunKey, nested_logs
from ragspan.records import RagRecord, SpanAnchor
from ragspan.request.contents import Document, FilledPrompt, PayloadMessage
from ragspan.request.record_making import record_of
from ragspan.request.tree import ModelStep, RequestTree, RerankStep, SearchStep, Step, SynthesisStep, ToolStep
from ragspan.safe_copy import Snapshot
from ragspan.turns import give_turn

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
    name: str  # the payload is the documents that it is given
    query: str | None = None
    model: str | None = None
    top_k: int | None = None
    is_filter: bool = False


class SynthesisStart(NamedTuple):
    name: str  # the payload is the documents that it is given


_STEPS: Mapping[type, type[Step]] = {
    ToolStart: ToolStep,
    SearchStart: SearchStep,
    ModelStart: ModelStep,
    RerankStart: RerankStep,
    SynthesisStart: SynthesisStep,
}


def record_of_log(log: RequestLog) -> RagRecord | None:
    """The record of a request; None if it answered nothing."""
    tree = tree_of(log)
    give_turn()
    return record_of(tree)


def tree_of(log: RequestLog, around: Mapping[RunKey, Step] | None = None) -> RequestTree:
    """The tree of a request, with those of the interrupted requests that it continues.

    Args:
        log: of the request, or of what happened inside another one.
        around: by its outermost runs, the steps of that one that they are in.
    """
    before = None
    for earlier in log.earlier:
        before = _one_tree(earlier, before, {})
    return _one_tree(log, before, around or {})


def _one_tree(log: RequestLog, before: RequestTree | None, outer: Mapping[RunKey, Step]) -> RequestTree:
    noted = log.about
    tree = RequestTree(
        started_ns=log.started_ns,
        ended_ns=log.ended_ns,
        framework=noted.get("framework", "langchain"),
        run_type=noted.get("run_type"),
        run_id=None if noted.get("run_id") is None else str(noted["run_id"]),
        tags=noted.get("tags", ()),
        metadata=noted.get("metadata", {}),
        anchor=log.anchor,
        grouped=log.grouped,
        abandoned=log.abandoned,
        delivered=bool(noted.get("delivered")),
        before=before,
    )
    steps: dict[RunKey, Step] = {}
    copies: dict[RunKey, int] = {}  # how many times the handler is in the run's list of handlers
    for kind, run, parent, time_ns, payload, about in list(log.events):
        if kind is EventKind.START:
            around = outer.get(run) if parent is None else steps.get(parent)
            kind_of = _STEPS.get(type(about), Step)
            told = {"name": about} if kind_of is Step else about._asdict()
            steps[run] = tree.begin(kind_of(**told, parent=around, started_ns=time_ns, inputs=payload))
        elif kind is EventKind.CONTEXTS:
            tree.recorded += payload
            tree.found_nothing |= not payload
        elif kind is EventKind.REREAD:  # models may have been given the new texts
            _add_rewritten(tree, payload)
        elif kind is EventKind.AGAIN:
            copies[run] = copies.get(run, 1) + 1
        elif run in steps:
            _note(tree, steps[run], kind, time_ns, payload, about)
    for run, stream in log.streams.items():
        if isinstance(model := steps.get(run), ModelStep):
            model.tokens = stream.tokens[:: copies.get(run, 1)]
            model.first_token_ns, model.last_chunk = stream.first_ns, stream.last_chunk
    for inner in nested_logs(log):
        tree.take_in(inner.log.tree_inside(inner.steps_around(steps)))
    return tree


def _add_rewritten(tree: RequestTree, documents: Sequence[tuple[Document, str]]) -> None:
    for model in tree.all_of(ModelStep):
        model.rewritten = [*model.rewritten, *documents]


def _note(tree: RequestTree, step: Step, kind: EventKind, time_ns: int, payload: Any, about: Any) -> None:
    """Add what happened to a step, or in it; what the program shows there, and a template that it filled, are steps of their own."""
    if kind is EventKind.INTERRUPT:
        tree.interrupted.append(step)
    elif kind is EventKind.DOCUMENTS:
        tree.end(tree.begin(Step(name=about, parent=step, started_ns=time_ns)), time_ns, payload)
    elif kind is EventKind.FILLED:
        template = Step(name="template", parent=step, started_ns=time_ns, inputs=payload)
        tree.end(tree.begin(template), time_ns, FilledPrompt())
    elif kind in {EventKind.END, EventKind.READ, EventKind.ERROR}:
        if isinstance(step, SearchStep):
            step.span = step.span or about
        late_inputs = about if type(step) is Step and not isinstance(about, SpanAnchor) else None
        if kind is EventKind.ERROR:
            tree.fail(step, time_ns, payload, late_inputs)
        elif not step.ended_ns:
            if isinstance(step, ModelStep):
                step.provider_metadata = about or ()
            elif isinstance(step, ToolStep) and step.call_id is None and isinstance(payload, PayloadMessage):
                step.call_id = payload.call_id  # langchain-core before 1.1.2 does not tell it at the start
            tree.end(step, time_ns, payload, late_inputs)
