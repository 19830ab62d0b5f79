"""Reads the log of a request into its tree, and keeps beside it what only LlamaIndex says of a step. Runs in the worker."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from ragspan.capturing import OPAQUE, Event, EventKind, RequestLog, RunKey, Snapshot, nested_logs
from ragspan.request import (
    ROLES,
    Call,
    Document,
    FilledPrompt,
    ModelStep,
    PayloadMessage,
    RequestTree,
    RerankStep,
    SearchStep,
    SeenDocument,
    Step,
    SynthesisStep,
    ToolStep,
    json_in,
)
from ragspan_llama_index.classes import UUID_LENGTH, Role
from ragspan_llama_index.files import File
from ragspan_llama_index.nodes import LaterText
from ragspan_llama_index.step_facts import SeenNode, StepFacts
from ragspan_llama_index.streams import Stream

_STEPS: Mapping[Role | None, type[Step]] = {
    "tool": ToolStep,
    "search": SearchStep,
    "postprocessing": RerankStep,
    "model": ModelStep,
    "synthesis": SynthesisStep,
}
_OWN: Mapping[str, str] = {
    **{name: name for name in ("noted", "model", "query", "span")},
    "reply": "provider_metadata",
    "tool_name": "name",
    "arguments": "inputs",
}
"""By a payload's names, the attributes of the step itself."""


class Reading:
    """A log as a tree, with what LlamaIndex says of its steps; `finish` tells each what came out of it.

    Inside a `ragspan.capture` block the root is a step for the block, whose own status is not known here.

    Args:
        log: of the request, or of what happened inside another framework's.
        around: by its outermost spans, the steps of that other request that they are in.
    """

    def __init__(self, log: RequestLog, around: Mapping[RunKey, Step] | None = None) -> None:
        self.log = log
        self.tree = RequestTree(
            started_ns=log.started_ns,
            ended_ns=log.ended_ns,
            framework="llama_index",
            anchor=log.anchor,
            metadata=log.about.get("tags") or {},
            abandoned=log.abandoned,
        )
        self.facts: dict[Step, StepFacts] = {}
        """By each step, in the order in which they began."""
        self.inside: dict[Step | None, list[Step]] = defaultdict(list)
        """By each step, those directly inside it."""
        self.problems: list[str] = []
        """Types of the errors that spans ended with."""
        self.others: Sequence[Step] = ()
        """What another framework did inside."""
        self.is_handing_on = False
        """A workflow's step has ended, and the next one, for which it made an event, has not begun."""
        self._around = around
        self._at_work: set[RunKey] = set()  # spans of a workflow's steps that have not ended, or were cancelled
        self._steps: dict[RunKey | None, Step] = {}
        self._documents: dict[tuple[int, str], Document] = {}
        self.root = Step(name="answer", parent=None, started_ns=log.started_ns)
        if log.root is None and around is None:
            self._steps[""] = self._add(self.root, StepFacts())
        for event in log.history:
            self._read(event)
        self.steps = list(self.tree.steps)
        """All steps, in the order in which they began."""
        answer = self.facts_of(self.root).answer
        is_open = self.root.ended_ns and self.root.noted is None
        self.awaited = answer if isinstance(answer, Stream) and is_open else None
        """The stream that the request ends with; it is over when this one is."""
        if self.awaited is not None:
            self.tree.noted = self.awaited.noted

    # Events

    def _read(self, event: Event) -> None:
        kind, run, _, time_ns, payload, about = event
        step = self._begin(event) if kind is EventKind.START else self._steps.get(run) if run else None
        if kind is EventKind.CONTEXTS:
            self.tree.recorded += payload["recorded"]
            self.tree.found_nothing |= not payload["recorded"]
        elif kind is EventKind.NODES:
            self._see_later(payload)
        elif kind is EventKind.WORK:
            self._at_work.add(run)
            self.is_handing_on = False
            step = None if self.facts_of(self.root).asked else self.root
        elif kind is EventKind.WORK_OVER:
            self._at_work.discard(run)
            self.is_handing_on = bool(about)
        elif kind is EventKind.ERROR:
            self.problems.append(payload["error"])
            self._at_work -= set() if about else {run}  # it is not a cancellation
        if step is not None:
            self._take(step, payload)
            self._continue(step, kind, time_ns)

    def _begin(self, event: Event) -> Step:
        role, of_class = event.about or (None, None)
        around = (self._around or {}).get(event.run)
        step = _STEPS.get(role, Step)(
            name="answer" if of_class is None else of_class.name,
            parent=self._steps.get(event.parent, around),
            started_ns=event.time_ns,
        )
        if event.run == self.log.root:
            self.root = step
        self._steps[event.run] = step
        return self._add(step, StepFacts(role, str(event.run), of_class))

    def _add(self, step: Step, facts: StepFacts) -> Step:
        self.facts[step] = facts
        self.inside[step.parent].append(step)
        return self.tree.begin(step)

    def _take(self, step: Step, payload: Mapping[str, Any] | None) -> None:
        """Take what a payload says of a step. Only the texts that a synthesizer writes first count."""
        facts = self.facts[step]
        for name, value in (payload or {}).items():
            if name in _OWN:
                if value is not None:
                    setattr(step, _OWN[name], value)
            elif name == "prompt":
                step.inputs = [message_of(*part) for part in value]
            elif name in {"given", "found"}:
                setattr(facts, name, list(map(SeenNode, value)))
            elif name != "texts" or facts.texts is None:
                setattr(facts, name, value)

    def _continue(self, step: Step, kind: EventKind, time_ns: int) -> None:
        if kind is EventKind.READ:
            self.tree.end(step, time_ns)
        elif kind in {EventKind.END, EventKind.ERROR}:
            self._end(step, time_ns)

    def _end(self, step: Step, time_ns: int) -> None:
        facts = self.facts[step]
        if facts.role in {"call", "synthesis"}:
            facts.origin = next((each for each in reversed(self.inside[step]) if self._handed_on(each, facts)), None)
        if step.noted is not None:
            self.tree.fail(step, time_ns, step.noted)
        elif not (facts.streams and isinstance(step, ModelStep)):  # which ends when it has been read
            self.tree.end(step, time_ns)

    def _handed_on(self, inner: Step, facts: StepFacts) -> bool:
        own = self.facts[inner]
        if isinstance(facts.answer, Stream):
            return own.answer is facts.answer and own.role != "chat writer"
        return own.result is not None and own.result == facts.result

    def _see_later(self, later: Mapping[int, LaterText]) -> None:
        for facts in self.facts.values():
            for node in facts.found or ():
                if node.identity in later:
                    node.see_later(*later[node.identity])

    # What is known of the steps

    def facts_of(self, step: Step) -> StepFacts:
        return self.facts.get(step) or StepFacts()

    def walk(self, step: Step) -> Iterator[Step]:
        """The step and all inside it, in the order in which they began."""
        yield step
        for inner in self.inside[step]:
            yield from self.walk(inner)

    def text_of(self, step: Step) -> str | None:
        """What a step answered, or had streamed so far."""
        facts = self.facts_of(step)
        if facts.streams and facts.answer is None:
            inner = (self.text_of(each) for each in self.inside[step])
            return "".join(facts.tokens) or next(filter(None, inner), None)
        return facts.answer.text() if isinstance(facts.answer, Stream) else facts.answer

    @property
    def aborted(self) -> bool:
        return self.log.abandoned or bool(self.log.about.get("aborted"))

    @property
    def is_interrupted(self) -> bool:
        """Whether it is a run that was left while it waited for somebody."""
        is_waiting = len(self.log.keys) > 1 and not (self._at_work or self.is_handing_on)
        return self.aborted and self.facts_of(self.root).is_run and self.awaited is None and is_waiting

    # The tree

    def continue_from(self, beginning: Reading) -> None:
        """Put what a run did before it was interrupted in front of what it did after it."""
        self.tree.before = beginning.tree
        self.facts = {**beginning.facts, **self.facts}
        self.inside |= {step: inner for step, inner in beginning.inside.items() if step is not None}
        self.inside[self.root] = [*beginning.inside[beginning.root], *self.inside[self.root]]
        own = self.facts_of(self.root)
        own.asked = own.asked or beginning.facts_of(beginning.root).asked

    def finish(self) -> RequestTree:
        """The tree, once each step knows what came out of it."""
        outer = {step: models for step in self.tree.all_of(ModelStep) if (models := self._models_in(step))}
        for model, models in outer.items():
            if len(models) == 1 and _writes_out(model.messages, models[0].messages):
                models[0].inputs = [replace(part, unread=()) for part in model.messages]
        self._leave_out(outer)
        calls = self.tree.all_of(ModelStep)
        pairs = [(step, after) for step, after in pairwise(calls) if self._only_hands_on(step, after)]
        for facts, later in ((self.facts[step], self.facts[after]) for step, after in pairs):
            later.tokens, later.said = later.tokens or facts.tokens, later.said or facts.said
        self._leave_out(step for step, _ in pairs)
        for step in self.tree.steps:
            self._fill(step, self.facts[step])
        self._leave_out(
            step for step, facts in self.facts.items() if facts.found and all(map(SeenNode.describes_tool, facts.found))
        )
        for step in self.steps:
            self._add_template(step)
        self._add_call_ids()
        for inner in nested_logs(self.log):
            tree = inner.log.tree_inside(inner.steps_around(self._steps))
            self.tree.take_in(tree)
            self.others = [*self.others, *(step for step in tree.steps if step in self.tree.steps)]
        facts = self.facts_of(self.root)
        asked = "\n".join(text for _, text in facts.asked)
        self.tree.inputs = [message_of("user", [asked, *facts.files], (), None)]
        return self.tree

    def _models_in(self, step: Step) -> list[ModelStep]:
        return [inner for inner in self.inside[step] if isinstance(inner, ModelStep)]

    def _leave_out(self, steps: Iterable[Step]) -> None:
        """These are not searches for documents, or not calls of models of their own."""
        left_out = set(steps)
        self.tree.steps = [step for step in self.tree.steps if step not in left_out]
        self.tree.moments = [moment for moment in self.tree.moments if moment[0] not in left_out]

    def _only_hands_on(self, step: Step, after: Step) -> bool:
        """Whether an asynchronous stream only reads the synchronous one, as the framework's defaults do."""
        if not self.facts[step].streams or step.name != after.name:
            return False
        method, inner = (self.facts[each].span_id[len(each.name) + 1 : -UUID_LENGTH] for each in (step, after))
        return method == f"a{inner}"

    def _fill(self, step: Step, facts: StepFacts) -> None:
        """Set what a step was given, and what came out of it."""
        found: Snapshot = None if facts.found is None else list(self._documents_of(facts.found))
        given = list(self._documents_of(facts.given, facts.texts)) or OPAQUE
        output: Snapshot = given
        if isinstance(step, ToolStep):
            said = self.text_of(step)
            output = None if said is None else PayloadMessage("tool", said, artifact=found or None)
        elif isinstance(step, SearchStep):
            step.inputs = facts.asked[0][1] if facts.asked else None
            step.metadata = {"top_k": facts.top_k, "data_source_id": facts.source}
            output = found or []
        elif isinstance(step, ModelStep):
            self._fill_model(step, facts)
            return
        elif isinstance(step, (SynthesisStep, RerankStep)):
            step.inputs, output = given, found or OPAQUE
            if isinstance(step, RerankStep):
                step.given, step.found = seen_in(facts.given), seen_in(facts.found or ())
                step.top_k = facts.top_k if type(facts.top_k) is int else None
                step.is_filter = not (facts.of_class and facts.of_class.is_reranker)
        if step.ended_ns and step.noted is None:
            step.output = output

    def _fill_model(self, step: ModelStep, facts: StepFacts) -> None:
        said, stream = facts.said if facts.said is not None else self.text_of(step), self.awaited
        calls = list(facts.asked_for)
        step.reply = PayloadMessage("ai", said or "", calls, searched=facts.searched) if said or calls else None
        step.provider, step.streamed = facts.provider, facts.streams
        if facts.streams and stream is not None and stream.tokens:
            step.first_token_ns = stream.first_ns

    def _documents_of(self, nodes: Sequence[SeenNode], texts: Sequence[str] | None = None) -> Iterator[Snapshot]:
        """Nodes as documents, each with its score; one that was changed in place is one before and one after it."""
        written = texts if texts is not None and len(texts) == len(nodes) else [None] * len(nodes)
        for node, shown in zip(nodes, written, strict=True):
            for text in () if node.describes_tool() else dict.fromkeys((node.later_text, node.text)):
                document = self._documents.setdefault(
                    (node.identity, text), Document(text, node.id, node.metadata, node.text_for_model())
                )
                document.written = shown or document.written
                yield [document, node.score]

    def _add_template(self, step: Step) -> None:
        """Show what the framework filled a prompt template with, as a step of its own."""
        facts = self.facts[step]
        filled = facts.filled
        if isinstance(step, SynthesisStep):
            filled = [*(facts.texts or ()), *(node.text_for_model() for node in facts.given)]
        if filled:
            template = Step(name="template", parent=step, started_ns=step.started_ns)
            template.inputs = {str(place): text for place, text in enumerate(filled)}
            prompts = [part for inner in self.walk(step) for part in inner.messages]
            self.tree.end(self.tree.begin(template), step.ended_ns or step.started_ns, FilledPrompt(prompts))

    def _add_call_ids(self) -> None:
        """Tell each tool the id of the request that it answers: the framework does not hand it over."""
        asked = [(step, call) for step in self.tree.all_of(ModelStep) for call in self.facts[step].asked_for]
        for tool in self.tree.all_of(ToolStep):
            for entry in asked:
                model, call = entry
                is_same = call.name == tool.name and _read(call.arguments) == _read(tool.inputs)
                if is_same and model.started_ns <= tool.started_ns:
                    asked.remove(entry)
                    tool.call_id = call.id
                    break


def _writes_out(given: Sequence[PayloadMessage], written: Sequence[PayloadMessage]) -> bool:
    """Whether a model was given these messages as one text, in which nobody knows whose they are."""
    prompt, at = "\n".join(part.text for part in written), 0
    for part in given:
        at = prompt.find(part.text.strip(), at)
        if at < 0:
            return False
        at += len(part.text.strip())
    return bool(given)


def message_of(role: Any, contents: Sequence[str | File], calls: Sequence[Call], call_id: Any) -> PayloadMessage:
    """A message of a prompt."""
    own = ROLES.get(role, role) if isinstance(role, str) else "human"
    read = [(each, each.text() if isinstance(each, File) else each) for each in contents]
    unread = [each.end for each, text in read if isinstance(each, File) and text is None]
    return PayloadMessage(
        own, "\n".join(text for _, text in read if text is not None), list(calls), call_id, unread=unread
    )


def seen_in(nodes: Sequence[SeenNode]) -> list[SeenDocument]:
    """Nodes as they were when they passed by."""
    return [
        SeenDocument(Document(node.text, node.id, node.metadata), rank, node.score) for rank, node in enumerate(nodes)
    ]


def _read(arguments: Any) -> Any:
    """Arguments that a provider may have as JSON."""
    return json_in(arguments) or arguments if isinstance(arguments, str) else arguments
