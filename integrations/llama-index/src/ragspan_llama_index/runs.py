"""The steps of a request as a `RequestTree`, which the common rules read, and what a record shows of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from ragspan.capturing import OPAQUE, RunKey, Snapshot, inner_logs
from ragspan.records import Generation, Reranking, Retrieval, RetrievedContext, ToolCall
from ragspan.runs import (
    Document,
    FilledPrompt,
    ModelStep,
    PayloadMessage,
    RequestTree,
    SearchStep,
    SeenDocument,
    ToolStep,
    context_of_seen,
    json_in,
)
from ragspan.runs import Step as CommonStep
from ragspan.runs import StepRecords as CommonRecords
from ragspan_llama_index.classes import SPEAKING
from ragspan_llama_index.steps import Request, SeenNode, Step, message_of

_MAX_OF_A_KIND = 100
_PROVIDERS = "llama_index.llms."
_AGENTS = ("BaseWorkflowAgent", "AgentWorkflow")
_UNNAMED = "Agent"  # the framework's default

_AnyRun = TypeVar("_AnyRun", bound=CommonStep)


class Runs:
    """The steps of one request, as a tree and as a record shows them.

    Args:
        request: with what it did before it was interrupted.
        models: those of its steps that are calls of models.
        around: by its outermost steps, those of another framework's request that they are in.
    """

    def __init__(
        self, request: Request, models: Sequence[Step], around: Mapping[RunKey, CommonStep] | None = None
    ) -> None:
        self._request = request
        self._models = models
        self.others: list[CommonStep] = []
        """What another framework did inside."""
        self._documents: dict[tuple[int, str], Document] = {}
        self._runs: dict[int, CommonStep] = {}
        self._ends: dict[CommonStep, tuple[int, Snapshot]] = {}
        log = request.log
        self.tree = RequestTree(
            started_ns=log.started_ns,
            ended_ns=log.ended_ns,
            framework="llama_index",
            abandoned=log.abandoned,
            retrieval_tools=(),  # what such a tool found is noted as nodes
        )
        if around is None:
            self._add(request.root, None)
        for child in () if around is None else request.root.children:
            self._add(child, around.get(child.span_id) if around else None)
        self._add_call_ids()
        self._grow()
        steps = {step.span_id: self._runs[id(step)] for step in request.root.walk() if id(step) in self._runs}
        for inner in inner_logs(log):
            tree = inner.log.tree_inside(inner.steps_around(steps))
            self.tree.take_in(tree)
            self.others += (step for step in tree.steps if step in self.tree.steps)
        asked = "\n".join(text for _, text in request.root.asked)
        self.tree.inputs = [message_of("user", [asked, *request.root.files], (), None)]
        self.models = {key: run for key, run in self._runs.items() if isinstance(run, ModelStep)}
        """The calls of models, by the identities of their steps."""
        self._note_found()
        others = [self._runs[id(step)] for step in request.steps if step.role in SPEAKING]
        self._steps = CommonRecords(self._all(SearchStep), self._all(ToolStep), others, log.ended_ns, context_of_seen)

    # As a record shows them

    def is_agent(self) -> bool:
        """Whether an agent answered: the framework says so, or a tool ran that a model had asked for."""
        root = self._request.root
        asked = any(tool.call_id is not None for tool in self._all(ToolStep))
        return asked or (root.is_run and any(map(root.has_base, _AGENTS)))

    def name(self) -> str:
        """What answered: an agent by the name that it was given, all else by its class."""
        given = self._request.root.agent_name
        named = self.is_agent() and isinstance(given, str) and given and given != _UNNAMED
        return given if named else self._request.root.name

    def tool_calls(self) -> tuple[ToolCall, ...]:
        return tuple(map(self._steps.tool_call, self._steps.tools))

    def retrievals(self) -> tuple[Retrieval, ...]:
        self._note_found()
        return tuple(map(self._steps.retrieval, self._all(SearchStep)[:_MAX_OF_A_KIND]))

    def _note_found(self) -> None:
        """Tell each search what it found, as it was, with the scores that it gave."""
        for step in self._request.steps:
            run = self._runs[id(step)]
            if isinstance(run, SearchStep):
                run.found = [
                    SeenDocument(Document(node.text, node.id, node.metadata), rank, node.score)
                    for rank, node in enumerate(step.found or ())
                ]

    def generations(self) -> tuple[Generation, ...]:
        shown = [(step, self._steps.generation(self.models[id(step)])) for step in self._models[:_MAX_OF_A_KIND]]
        others = [self._steps.generation(run) for run in self.others if isinstance(run, ModelStep)]
        return (*(replace(generation, streamed=step.streams) for step, generation in shown), *others[:_MAX_OF_A_KIND])

    def rerankings(self) -> tuple[Reranking, ...]:
        """Of the postprocessors those that are called rerankers, and those that leave nodes out; the others change texts."""
        return tuple(
            Reranking(
                name=step.name,
                query=step.query,
                given=_ordered(step.given),
                contexts=_ordered(step.found or ()),
                model=step.model if isinstance(step.model, str) else None,
                top_k=step.top_k if type(step.top_k) is int else None,
                is_filter=not _is_reranker(step),
                **self._steps.common(self._runs[id(step)]),
            )
            for step in self._request.steps
            if step.role == "postprocessing"
            and (_is_reranker(step) or (step.found is not None and len(step.found) < len(step.given)))
        )[:_MAX_OF_A_KIND]

    def _all(self, kind: type[_AnyRun]) -> list[_AnyRun]:
        """The runs of a kind, without those before an interruption."""
        runs = [*(self._runs[id(step)] for step in self._request.steps), *self.others]
        return [run for run in runs if isinstance(run, kind)]

    # The tree

    def _grow(self) -> None:
        """Begin and end the runs in the order in which that happened."""
        starts = [(run.started_ns, False, run) for run in self._ends]
        ends = [(ended_ns, True, run) for run, (ended_ns, _) in reversed(self._ends.items()) if ended_ns]
        for time_ns, is_over, run in sorted((*starts, *ends), key=lambda moment: moment[:2]):
            if not is_over:
                self.tree.begin(run)
            elif run.noted is None:
                self.tree.end(run, time_ns, self._ends[run][1])
            else:
                self.tree.fail(run, time_ns, run.noted)
        for run, (_, output) in self._ends.items():
            if isinstance(run, ModelStep):
                run.reply = output  # also of one that was cut off

    def _add(self, step: Step, parent: CommonStep | None) -> None:
        run, output = self._run_of(step, parent)
        self._runs[id(step)] = run
        ended_ns = step.read_ns if step.role == "model" and step.streams else step.ended_ns
        run.ended_ns = ended_ns
        is_of_tools = step.found and all(node.describes_tool() for node in step.found)
        asks_another = step.role == "model" and any(inner.role == "model" for inner in step.children)
        if not (is_of_tools or asks_another):  # no search for documents, no call of its own
            self._ends[run] = ended_ns, output
        for child in step.children:
            self._add(child, run)
        self.tree.recorded += step.recorded
        self.tree.found_nothing |= "recorded" in vars(step) and not step.recorded
        if filled := self._filled(step):
            prompts = [part for inner in step.walk() for part in inner.prompt]
            given = {str(place): text for place, text in enumerate(filled)}
            template = CommonStep(name="template", parent=run, started_ns=step.started_ns, inputs=given)
            self._ends[template] = step.ended_ns or step.started_ns, FilledPrompt(prompts)

    def _run_of(self, step: Step, parent: CommonStep | None) -> tuple[CommonStep, Snapshot]:
        """The run that a step is, and what comes out of it."""
        about: dict[str, Any] = {
            "parent": parent,
            "started_ns": step.started_ns,
            "noted": step.noted,
            "name": step.name,
        }
        found = None if step.found is None else list(self._documents_of(step.found))
        if step.role == "tool":
            about["name"] = step.tool_name or step.name
            told = PayloadMessage("tool", step.answer_text() or "", artifact=found or None)
            return ToolStep(inputs=step.arguments, **about), None if step.answer_text() is None else told
        if step.role == "search":
            asked = step.asked[0][1] if step.asked else None
            details = {"top_k": step.top_k, "data_source_id": step.source}
            return SearchStep(inputs=asked, metadata=details, span=step.span, **about), found or []
        if step.role != "model":
            given = list(self._documents_of(step.given, step.texts)) or OPAQUE
            is_work = step.role in {"synthesis", "postprocessing"}
            return CommonStep(inputs=given if is_work else OPAQUE, **about), (found or OPAQUE) if is_work else given
        stream = self._request.awaited if step.streams else None
        said = step.said if step.said is not None else step.answer_text()
        calls = list(step.asked_for)
        run = ModelStep(
            model=step.model,
            provider=_provider(step),
            inputs=step.prompt,
            provider_metadata=step.reply,
            first_token_ns=stream.first_ns if stream is not None and stream.tokens else None,
            **about,
        )
        return run, PayloadMessage("ai", said or "", calls, searched=step.searched) if said or calls else None

    def _filled(self, step: Step) -> Sequence[str]:
        """The texts that the framework filled its prompt template with."""
        if step.role == "synthesis":
            return [*(step.texts or ()), *(node.text_for_model() for node in step.given)]
        return step.filled

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

    def _add_call_ids(self) -> None:
        """Tell each tool the id of the request that it answers: the framework does not hand it over."""
        asked = [(model.started_ns, call) for model in self._models for call in model.asked_for]
        for tool in self._all(ToolStep):
            for entry in asked:
                began_ns, call = entry
                is_same = call.name == tool.name and _read(call.arguments) == _read(tool.inputs)
                if is_same and began_ns <= tool.started_ns:
                    asked.remove(entry)
                    tool.call_id = call.id
                    break


def _ordered(nodes: Sequence[SeenNode]) -> tuple[RetrievedContext, ...]:
    return tuple(
        RetrievedContext(text=node.text, id=node.id, rank=rank, score=node.score) for rank, node in enumerate(nodes)
    )


def _is_reranker(step: Step) -> bool:
    return step.facts is not None and step.facts.is_reranker


def _provider(step: Step) -> str | None:
    """Each provider has a package of its own, below the same one."""
    module = "" if step.facts is None else step.facts.module
    name = module.removeprefix(_PROVIDERS)
    return None if name == module else name.partition(".")[0]


def _read(arguments: Any) -> Any:
    """Arguments that a provider may have as JSON."""
    return json_in(arguments) or arguments if isinstance(arguments, str) else arguments
