"""A request as a tree of steps: plain data, whether LangChain's callbacks, LlamaIndex's dispatcher or spans of others showed it.

`tree_of` makes it of a log, in the worker. An event of a kind that is not known here, as a newer integration may note, is ignored.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from heapq import merge
from typing import Any, TypeVar

from ragspan.capturing.log import Event, EventKind, RequestLog, RunKey, TokenStream
from ragspan.messages import ErrorReport
from ragspan.records import RetrievedContext, SpanAnchor
from ragspan.request.contents import FilledPrompt, PayloadMessage
from ragspan.request.steps import ModelStep, SearchStep, Step, StepStart, ToolStep
from ragspan.safe_copy import OPAQUE, Opaque, Snapshot

INTERRUPTS = frozenset({"GraphInterrupt", "NodeInterrupt"})
"""A graph raises an error of this name to wait for a person."""
MAX_SAVED_STATES = 5
NO_INPUT_YET = {"input": ""}  # the input with which a stream starts; its real input comes with its end
AnyStep = TypeVar("AnyStep", bound=Step)


@dataclass(eq=False, kw_only=True)
class RequestTree:
    """A request. Its steps are below one root; those of a `ragspan.capture` block have no common one."""

    started_ns: int
    ended_ns: int = 0
    framework: str = "langchain"
    run_type: str | None = None
    """What the framework says that the root is, if it is not a plain chain: a parser, a prompt."""
    run_id: str | None = None
    tags: Sequence[Any] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    anchor: SpanAnchor | None = None  # the span that the answer belongs under
    grouped: bool = False  # the steps have no common root
    abandoned: bool = False  # it never ended, or not for too long
    delivered: bool = False  # the caller gets a model's tokens, although the calls in between are not streams
    before: RequestTree | None = None  # the interrupted request that this one continues
    recorded: list[RetrievedContext] = field(default_factory=list)  # what the program named with `record_contexts`
    found_nothing: bool = False  # the program said with `record_contexts` that it found nothing

    # Steps fill these in.
    root: Step | None = None
    steps: list[Step] = field(default_factory=list)  # the steps, in the order in which they began
    _of_kind: dict[type[Step], list[Any]] = field(default_factory=dict)
    moments: list[tuple[Step, bool]] = field(default_factory=list)
    """The starts (False) and ends (True) of steps, in order of time."""
    inputs: Snapshot = OPAQUE
    output: Snapshot = OPAQUE
    saved_states: list[Snapshot] = field(default_factory=list)
    """Inputs of the first steps, where the request had no question."""
    streamed: bool = False
    noted: ErrorReport | None = None
    interrupted: list[Step] = field(default_factory=list)  # graphs that stopped to wait for a person

    # Building

    def begin(self, step: AnyStep) -> AnyStep:
        """Add a step, which begins now."""
        self.steps.append(step)
        self.all_of(type(step)).append(step)
        self.moments.append((step, False))
        if step.parent is None:
            self._note_inputs(step.inputs)
            if self.root is None and not self.grouped:
                self.root = step
        elif type(step) is Step and isinstance(self.inputs, Opaque) and len(self.saved_states) < MAX_SAVED_STATES:
            self.saved_states.append(step.inputs)  # called with a command, not a question: steps have the state
        return step

    def end(self, step: Step, ended_ns: int, output: Snapshot = OPAQUE, late_inputs: Snapshot = None) -> None:
        """End a step with what it gave; of a model, with its reply."""
        step.ended_ns, step.output, step.late_inputs = ended_ns, output, late_inputs
        if isinstance(step, ModelStep):
            step.reply = output if isinstance(output, PayloadMessage) else None
            output = OPAQUE if step.reply is None else step.reply.text
        self.moments.append((step, True))
        if step.parent is None:
            self.output = OPAQUE if isinstance(step, SearchStep) else output
            self._note_late(late_inputs)

    def fail(self, step: Step, ended_ns: int, noted: ErrorReport, late_inputs: Snapshot = None) -> None:
        """End a step with an error."""
        step.ended_ns, step.noted, step.late_inputs = ended_ns, noted, late_inputs
        if step.parent is None:
            self.noted, self.output = noted, OPAQUE
            self._note_late(late_inputs)
        elif noted.name in INTERRUPTS:
            self.interrupted.append(step.parent)
        self.moments.append((step, True))

    def _note_late(self, inputs: Snapshot) -> None:
        if inputs is not None:
            self.streamed = True
            self._note_inputs(inputs)

    def _note_inputs(self, inputs: Snapshot) -> None:
        if self.grouped and not isinstance(self.inputs, Opaque):
            return
        if inputs == NO_INPUT_YET:
            self.streamed = True
        else:
            self.inputs = OPAQUE if inputs is None else inputs

    def merge_inner(self, other: RequestTree) -> None:
        """Add what another framework did inside. A model that only asks the other one's model is not a call of its own."""
        steps = [
            step for step in other.steps if not (isinstance(step, ModelStep) and isinstance(step.parent, ModelStep))
        ]
        moments = [moment for moment in other.moments if moment[0] in steps]
        ordered = merge(self.moments, moments, key=lambda one: one[0].ended_ns if one[1] else one[0].started_ns)
        self.rearrange(list(merge(self.steps, steps, key=lambda step: step.started_ns)), list(ordered))
        self.recorded += other.recorded
        self.found_nothing |= other.found_nothing

    def rearrange(self, steps: list[Step], moments: list[tuple[Step, bool]]) -> None:
        """Have these steps, at these moments, in place of the ones until now."""
        self.steps, self.moments, self._of_kind = steps, moments, {}
        for step in steps:
            self.all_of(type(step)).append(step)

    # Reading

    def all_of(self, kind: type[AnyStep]) -> list[AnyStep]:
        """The steps of a kind, in the order in which they began."""
        return self._of_kind.setdefault(kind, [])

    @property
    def error(self) -> str | None:
        if self.abandoned:
            return "GeneratorExit"  # as for a stream that its reader closed
        return None if self.noted is None else self.noted.name

    @property
    def chain_of_requests(self) -> list[RequestTree]:
        """The interrupted requests that this one continues, and itself."""
        trees = [self]
        while trees[-1].before is not None:
            trees.append(trees[-1].before)
        return trees[::-1]

    @cached_property
    def all_steps(self) -> list[Step]:
        """The steps, after those of the requests that this one continues."""
        return [step for tree in self.chain_of_requests for step in tree.steps]

    @cached_property
    def answering_models(self) -> list[ModelStep]:
        """The calls of models that may have served the answer, also before an interruption: not those inside a search."""
        return [step for tree in self.chain_of_requests for step in tree.all_of(ModelStep) if not step.inside_search]

    @property
    def asked_before(self) -> Snapshot:
        """What the first of the interrupted requests was called with that this one continues."""
        asked: Snapshot = OPAQUE
        for tree in self.chain_of_requests[:-1]:
            asked = asked if isinstance(tree.inputs, Opaque) else tree.inputs
            asked = tree.saved_states[-1] if asked is OPAQUE and tree.saved_states else asked
        return asked


# From a log


def tree_of(
    log: RequestLog,
    around: Mapping[RunKey, Step] | None = None,
    *,
    events: Iterable[Event] | None = None,
    streams: Mapping[RunKey, TokenStream] | None = None,
    before: RequestTree | None = None,
) -> RequestTree:
    """The tree of a request, with those of the interrupted requests that it continues.

    Args:
        log: of the request, or of what happened inside another one.
        around: by its outermost runs, the steps of that one that they are in.
        events: its events, if an integration had noted something for later in their place.
        streams: the same of its streams.
        before: the tree of the interrupted request that it continues, if that is known already.
    """
    for earlier in log.earlier if before is None else ():
        before = tree_of(earlier, before=before)
    outer, noted = around or {}, log.about
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
    for kind, run, parent, time_ns, payload, about in list(events or log.events):
        if kind is EventKind.START:
            above = outer.get(run) if parent is None else steps.get(parent)
            start = about if type(about) is StepStart else StepStart(Step, about)
            step = start.kind(name=start.name, parent=above, started_ns=time_ns, inputs=payload, **start.fields)
            steps[run] = tree.begin(step)
        elif kind is EventKind.CONTEXTS:
            tree.recorded += payload
            tree.found_nothing |= not payload
        elif kind is EventKind.REREAD:  # models may have been given the new texts
            for model in tree.all_of(ModelStep):
                model.rewritten = [*model.rewritten, *payload]
        elif kind is EventKind.AGAIN:
            copies[run] = copies.get(run, 1) + 1
        elif run in steps:
            _note(tree, steps[run], kind, time_ns, payload, about)
    _add_tokens(steps, streams or log.streams, copies)
    for inner in list(log.nested.values()):
        around = {run: steps[outer_run] for run, outer_run in inner.around.items() if outer_run in steps}
        tree.merge_inner(inner.log.tree_inside(around))
    return tree


def _add_tokens(
    steps: Mapping[RunKey, Step], streams: Mapping[RunKey, TokenStream], copies: Mapping[RunKey, int]
) -> None:
    """Add what models streamed; where the handler is in a list twice, it heard each token twice."""
    for run, stream in streams.items():
        if isinstance(model := steps.get(run), ModelStep):
            model.tokens = stream.tokens[:: copies.get(run, 1)]
            model.first_token_ns, model.last_chunk = stream.first_ns, stream.last_chunk


def _note(tree: RequestTree, step: Step, kind: EventKind, time_ns: int, payload: Any, about: Any) -> None:
    """Add what happened to a step, or in it; what the program shows there, and a template that it filled, are steps of their own."""
    if kind is EventKind.END or kind is EventKind.ERROR or kind is EventKind.READ:
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
    elif kind is EventKind.INTERRUPT:
        tree.interrupted.append(step)
    elif kind is EventKind.DOCUMENTS:
        tree.end(tree.begin(Step(name=about, parent=step, started_ns=time_ns)), time_ns, payload)
    elif kind is EventKind.FILLED:
        template = Step(name="template", parent=step, started_ns=time_ns, inputs=payload)
        tree.end(tree.begin(template), time_ns, FilledPrompt())
