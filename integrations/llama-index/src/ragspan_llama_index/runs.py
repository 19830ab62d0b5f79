"""The steps of a request as runs of `ragspan.runs`, which finds what is in prompts, and shows the steps in the record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

from ragspan.records import Generation, Reranking, Retrieval, RetrievedContext, ToolCall
from ragspan.runs.payloads import Document, Message, json_in
from ragspan.runs.step_records import StepRecords as CommonRecords
from ragspan.runs.step_records import context_of
from ragspan.runs.tree import ModelStep, SearchStep, SeenDocument, ToolStep
from ragspan.runs.tree import Step as CommonStep
from ragspan_llama_index.classes import SPEAKING
from ragspan_llama_index.steps import Request, SeenNode, Step

_MAX_OF_A_KIND = 100
_PROVIDERS = "llama_index.llms."
_AGENTS = ("BaseWorkflowAgent", "AgentWorkflow")
_UNNAMED = "Agent"  # the framework's default

_AnyRun = TypeVar("_AnyRun", bound=CommonStep)


class StepRecords:
    """The steps of one request, as runs and as a record shows them.

    Args:
        request: with what it did before it was interrupted.
        models: those of its steps that are calls of models.
    """

    def __init__(self, request: Request, models: Sequence[Step]) -> None:
        self._request = request
        self._runs: dict[int, CommonStep] = {}
        self._add_runs(request.root, None)
        self.models = {key: run for key, run in self._runs.items() if isinstance(run, ModelStep)}
        """The calls of models, by the identities of their steps."""
        self._models = models
        self._add_call_ids()
        others = [self._runs[id(step)] for step in request.steps if step.role in SPEAKING]
        self._steps = CommonRecords(
            self._all(SearchStep), self._all(ToolStep), others, request.log.ended_ns, _as_context
        )

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
        return tuple(map(self._steps.retrieval, self._all(SearchStep)[:_MAX_OF_A_KIND]))

    def generations(self) -> tuple[Generation, ...]:
        shown = [(step, self._steps.generation(self.models[id(step)])) for step in self._models[:_MAX_OF_A_KIND]]
        return tuple(replace(generation, streamed=step.streams) for step, generation in shown)

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
        runs = (self._runs[id(step)] for step in self._request.steps)
        return [run for run in runs if isinstance(run, kind)]

    def _add_runs(self, step: Step, parent: CommonStep | None) -> None:
        run = self._runs[id(step)] = self._run_of(step, parent)
        for child in step.children:
            self._add_runs(child, run)

    def _run_of(self, step: Step, parent: CommonStep | None) -> CommonStep:
        about: dict[str, Any] = {"parent": parent, "started_ns": step.started_ns, "noted": step.noted}
        if step.role == "tool":
            return ToolStep(
                name=step.tool_name or step.name,
                ended_ns=step.ended_ns,
                inputs=step.arguments,
                output=step.answer_text(),
                **about,
            )
        if step.role == "search":
            run = SearchStep(
                name=step.name,
                ended_ns=step.ended_ns,
                inputs=step.asked[0][1] if step.asked else None,
                metadata={"top_k": step.top_k, "data_source_id": step.source},
                span=step.span,
                **about,
            )
            run.found = [
                SeenDocument(Document(node.text, node.id, node.metadata), rank, node.score)
                for rank, node in enumerate(step.found or ())
            ]
            return run
        if step.role != "model":
            return CommonStep(name=step.name, ended_ns=step.ended_ns, **about)
        stream = self._request.awaited if step.streams else None
        said = step.said if step.said is not None else step.answer_text()
        calls = list(step.asked_for)
        return ModelStep(
            name=step.name,
            ended_ns=step.read_ns if step.streams else step.ended_ns,
            model=step.model,
            provider=_provider(step),
            prompt=step.prompt,
            reply=Message("ai", said or "", calls) if said or calls else None,
            told=step.reply,
            first_token_ns=stream.first_ns if stream is not None and stream.tokens else None,
            **about,
        )

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


def _as_context(seen: SeenDocument) -> RetrievedContext:
    return context_of(seen.document, rank=seen.rank, score=seen.score)


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
