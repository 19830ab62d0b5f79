"""Makes the record of a request from its tree, with its tools, searches, rerankers and calls of models; run in the worker."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from typing import Any

from ragspan import field_names
from ragspan.matching import PromptTexts
from ragspan.record_json import plain_entries
from ragspan.records import AnswerStatus, RagRecord
from ragspan.request.documents import SeenDocuments
from ragspan.request.evidence import Evidence, evidence_of
from ragspan.request.question_and_response import question_in, status_and_response
from ragspan.request.step_records import StepRecords, ToContext, context_of_seen
from ragspan.request.tree import ModelStep, RequestTree, RerankStep, SearchStep, SynthesisStep, ToolStep

_MAX_OF_A_KIND = 100
_TRACING = ("ls_", "langgraph_", "checkpoint", "__", "llamaindex.")
"""So begin the names of what the frameworks add for their tracing."""


def record_of(tree: RequestTree) -> RagRecord | None:
    """The record of a request; None if it answered nothing."""
    if not tree.grouped and not tree.recorded and _is_no_answer(tree):
        return None
    seen = SeenDocuments(tree)
    status, response = status_and_response(tree)
    has_asked = any(isinstance(step, (ModelStep, SearchStep)) for step in tree.steps)
    if response is None and status == "complete" and not (has_asked or tree.recorded):
        return None  # a prompt that was filled in, say
    if tree.run_type != "engine" and _shows_documents(tree, seen, response):
        return None
    question = _question(tree, seen)
    to_context = functools.cache(context_of_seen)  # most documents are found, and reach the prompt
    evidence = evidence_of(tree, seen, question, response, to_context)
    return record_with(tree, evidence, question, response, status, to_context)


def record_with(
    tree: RequestTree,
    evidence: Evidence,
    question: str | None,
    response: str | None,
    status: AnswerStatus,
    to_context: ToContext = context_of_seen,
) -> RagRecord:
    """The record of a request of which this is known, with its steps."""
    models, tools = tree.all_of(ModelStep), tree.all_of(ToolStep)
    writers = [*models, *tree.all_of(SynthesisStep)]
    steps = StepRecords(tree.all_of(SearchStep), tools, writers, tree.ended_ns, to_context)
    return RagRecord(
        question=question,
        response=response,
        status=status,
        error_type=tree.error if status == "error" else None,
        run_id=tree.run_id,
        framework=tree.framework,
        name=tree.name,
        started_ns=tree.started_ns,
        ended_ns=tree.ended_ns,
        parent=tree.anchor,
        retrievals=tuple(map(steps.retrieval, steps.searches)),
        generations=tuple(map(steps.generation, models[:_MAX_OF_A_KIND])),
        session_id=_first_of(tree.metadata, field_names.SESSION),
        user_id=_first_of(tree.metadata, field_names.USER),
        tags=tuple(str.__str__(tag) for tag in tree.tags if isinstance(tag, str)),
        metadata=_own_metadata(tree.metadata),
        tool_calls=tuple(map(steps.tool_call, steps.tools)),
        rerankings=steps.rerankings(tree.all_of(RerankStep)),
        is_agent=_is_agent(tree),
        error=tree.noted.report() if status == "error" and tree.noted is not None else None,
        **evidence._asdict(),
    )


def _is_no_answer(tree: RequestTree) -> bool:
    """A bare search, prompt, parser or call of a model or tool is not an answer to score; a tool that asks a model is one."""
    if tree.run_type in {"parser", "prompt"} or isinstance(tree.root, (SearchStep, ModelStep)):
        return True
    return isinstance(tree.root, ToolStep) and not tree.all_of(ModelStep)


def _shows_documents(tree: RequestTree, seen: SeenDocuments, response: str | None) -> bool:
    """No model was asked, and what came out is what a search found: a search with a formatter."""
    if response is None or tree.grouped or tree.recorded or tree.answering_models:
        return False
    return any(PromptTexts([response]).find([entry.text for entry in seen.all], cut=False))


def _question(tree: RequestTree, seen: SeenDocuments) -> str | None:
    queries = seen.queries
    found = [question_in(tree.inputs, queries), question_in(tree.asked_before, queries)]
    saved = [question_in(state, named_only=True) for state in tree.saved_states]
    found += [question for question in saved if question not in queries]  # what a model asked its tools
    found += saved
    found += [question_in(state, queries) for state in tree.saved_states]
    found += [step.query for step in tree.all_of(SearchStep)[:1]]
    return next((question for question in found if question is not None), None)


def _first_of(metadata: Mapping[str, Any], keys: Iterable[str]) -> str | None:
    """The first of these entries, as a text."""
    found = (metadata.get(key) for key in keys)
    return next((str(value) for value in found if isinstance(value, (str, int)) and value != ""), None)


def _own_metadata(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    """The program's own metadata, without what the frameworks add for their tracing."""
    own = plain_entries(metadata)
    return {key: value for key, value in own.items() if not key.startswith(_TRACING)}


def _is_agent(tree: RequestTree) -> bool:
    """Whether an agent answered: the framework says so, or a tool ran that a model had asked for."""
    asked = (tool.call_id is not None for tool in tree.all_of(ToolStep))
    return tree.metadata.get("ls_integration") == "langchain_create_agent" or any(asked)
