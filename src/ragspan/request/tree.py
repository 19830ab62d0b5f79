"""A request as a tree of steps: plain data, whether LangChain's callbacks, LlamaIndex's dispatcher or spans of others showed it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from heapq import merge
from typing import Any, TypeVar

from ragspan.messages import ErrorReport
from ragspan.records import RetrievedContext, SpanAnchor
from ragspan.request.contents import Document, PayloadMessage, content_text, documents_in, tool_messages
from ragspan.safe_copy import OPAQUE, Opaque, Snapshot

INTERRUPTS = frozenset({"GraphInterrupt", "NodeInterrupt"})
"""A graph raises an error of this name to wait for a person."""
MAX_SAVED_STATES = 5
NO_INPUT_YET = {"input": ""}  # the input with which a stream starts; its real input comes with its end


@dataclass(eq=False, slots=True)
class SeenDocument:
    """A document that a step showed."""

    document: Document
    rank: int | None
    score: float | None
    from_history: bool = False  # only the state of a conversation has shown it
    is_beside: bool = False  # its text is one of a document's metadata

    @property
    def text(self) -> str:
        return self.document.text


@dataclass(eq=False, kw_only=True)
class Step:
    """A step of an answer, from its start to its end: a chain, unless it is of a kind below."""

    name: str
    parent: Step | None  # the step around it
    started_ns: int
    ended_ns: int = 0  # it is 0 while the step is open
    inputs: Snapshot = OPAQUE
    output: Snapshot = OPAQUE
    late_inputs: Snapshot = None  # inputs that came with its end, as a stream's do
    noted: ErrorReport | None = None  # the error that ended it
    inside_search: bool = field(init=False)

    def __post_init__(self) -> None:
        self.put_in(self.parent)

    def put_in(self, around: Step | None) -> None:
        """Set the step around it, which has its own already."""
        self.parent = around
        self.inside_search = around is not None and (around.inside_search or isinstance(around, SearchStep))

    @property
    def messages(self) -> Sequence[PayloadMessage]:
        """The messages that it was given."""
        given = self.inputs if isinstance(self.inputs, list) else ()
        return [each for each in given if isinstance(each, PayloadMessage)]

    @property
    def error(self) -> str | None:
        return None if self.noted is None else self.noted.name

    def ancestors(self) -> Iterator[Step]:
        """The steps around it, from the innermost out."""
        step = self.parent
        while step is not None:
            yield step
            step = step.parent

    def is_within(self, other: Step) -> bool:
        return other in self.ancestors()


@dataclass(eq=False, kw_only=True)
class ToolStep(Step):
    call_id: Any = None  # the id of the model's request
    shown: Sequence[SeenDocument] = ()  # the documents that it returned

    @property
    def result(self) -> Snapshot:
        """What it returned: the text of its message, if it is one."""
        messages = tool_messages(self.output)
        return next(
            (each.content if isinstance(each.content, str) else each.prompt_text for each in messages), self.output
        )


@dataclass(eq=False, kw_only=True)
class SearchStep(Step):
    found: Sequence[SeenDocument] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """The search's `top_k` and `data_source_id`, where they are known."""
    span: SpanAnchor | None = None  # the span of another instrumentation

    @property
    def query(self) -> str | None:
        return self.inputs if isinstance(self.inputs, str) else None


@dataclass(eq=False, kw_only=True)
class RerankStep(Step):
    """Puts documents in order, or leaves some out."""

    query: str | None = None
    model: str | None = None
    top_k: int | None = None
    is_filter: bool = False
    """It is not a reranker: it counts where it left documents out, and else changes their texts."""

    @property
    def given(self) -> list[SeenDocument]:
        return _seen_in(self.inputs)

    @property
    def found(self) -> list[SeenDocument]:
        return _seen_in(self.output)


def _seen_in(documents: Snapshot) -> list[SeenDocument]:
    pairs = [pair for found in documents_in(documents) for pair in found]
    return [SeenDocument(document, rank, score) for rank, (document, score) in enumerate(pairs)]


@dataclass(eq=False, kw_only=True)
class SynthesisStep(Step):
    """Writes an answer from the documents that it was given, by calls of models inside it."""


@dataclass(eq=False, kw_only=True)
class ModelStep(Step):
    """A call of a model; its `inputs` are the messages of its prompt."""

    model: Any = None
    provider: Any = None
    beside: Snapshot = None  # documents that it was given beside its messages
    rewritten: Sequence[tuple[Document, str]] = ()
    """Documents that the program had changed in place until then, with their new texts."""
    prompt: Sequence[PayloadMessage] = ()  # what it was given, as texts; nothing inside a search
    reply: PayloadMessage | None = None
    provider_metadata: Sequence[Mapping[str, Any]] = ()  # what the provider said about the reply, in any form
    tokens: Sequence[Any] = ()
    streamed: bool = False  # it gave its reply as a stream; so does each with a first token
    first_token_ns: int | None = None
    last_chunk: tuple[bool, Sequence[Mapping[str, Any]]] | None = None
    """Whether the last chunk of a stream said that it was the last, and what the provider said with it."""

    @property
    def said(self) -> str:
        """All that it said, or what it had streamed when it was cut off."""
        return "".join(map(content_text, self.tokens)) if self.reply is None else self.reply.text


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

    def take_in(self, other: RequestTree) -> None:
        """Add what another framework did inside. A model that only asks the other one's model is not a call of its own."""
        steps = [
            step for step in other.steps if not (isinstance(step, ModelStep) and isinstance(step.parent, ModelStep))
        ]
        moments = [moment for moment in other.moments if moment[0] in steps]
        self.steps = list(merge(self.steps, steps, key=lambda step: step.started_ns))
        self.moments = list(
            merge(self.moments, moments, key=lambda one: one[0].ended_ns if one[1] else one[0].started_ns)
        )
        self.recorded += other.recorded
        self.found_nothing |= other.found_nothing

    # Reading

    def all_of(self, kind: type[AnyStep]) -> list[AnyStep]:
        """The steps of a kind, in the order in which they began."""
        return [step for step in self.steps if isinstance(step, kind)]

    @property
    def error(self) -> str | None:
        if self.abandoned:
            return "GeneratorExit"  # as for a stream that its reader closed
        return None if self.noted is None else self.noted.name

    @property
    def name(self) -> str:
        return next((step.name for step in self.steps), "")

    @property
    def chain_of_requests(self) -> list[RequestTree]:
        """The interrupted requests that this one continues, and itself."""
        trees = [self]
        while trees[-1].before is not None:
            trees.append(trees[-1].before)
        return trees[::-1]

    @cached_property
    def answering_models(self) -> list[ModelStep]:
        """The calls of models that may have served the answer, also before an interruption: not those inside a search."""
        models = (step for tree in self.chain_of_requests for step in tree.all_of(ModelStep))
        return [step for step in models if not step.inside_search]

    @property
    def asked_before(self) -> Snapshot:
        """What the first of the interrupted requests was called with that this one continues."""
        asked: Snapshot = OPAQUE
        for tree in self.chain_of_requests[:-1]:
            asked = asked if isinstance(tree.inputs, Opaque) else tree.inputs
            asked = tree.saved_states[-1] if asked is OPAQUE and tree.saved_states else asked
        return asked
