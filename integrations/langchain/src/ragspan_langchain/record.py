"""Makes the record of a request from its log; runs in the worker."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ragspan.capturing.log import RequestLog
from ragspan.matching import PromptText
from ragspan.records import AnswerStatus, RagRecord, RetrievedContext, plain_entries
from ragspan_langchain.answers import question_in
from ragspan_langchain.endings import status_and_response
from ragspan_langchain.fold import trace_of
from ragspan_langchain.prompt_provenance import documents_behind
from ragspan_langchain.steps import Steps, as_context, is_agent
from ragspan_langchain.trace import ModelRun, RetrieverRun, ToolRun, Trace

_SESSION_KEYS = ("session_id", "thread_id", "conversation_id", "langfuse_session_id")
_USER_KEYS = ("user_id", "langfuse_user_id")
_REMOTE = {"RemoteRunnable", "RemoteGraph"}
"""Steps that call a program elsewhere, which may search."""


def record_of(log: RequestLog) -> RagRecord | None:
    """The record of a request; None if it answered nothing."""
    trace = trace_of(log)
    if not log.grouped and not trace.recorded and _is_no_answer(trace):
        return None
    status, response = status_and_response(trace)
    if _says_nothing(trace, status, response) or _shows_documents(trace, response):
        return None
    question = _question(trace)
    steps = Steps(trace)
    metadata = log.about.get("metadata", {})
    return RagRecord(
        question=question,
        contexts=_contexts(trace, question, response),
        response=response,
        status=status,
        error_type=trace.error if status == "error" else None,
        framework="langchain",
        name=trace.name,
        started_ns=log.started_ns,
        ended_ns=log.ended_ns,
        parent=log.anchor,
        retrievals=steps.retrievals(),
        generations=steps.generations(),
        session_id=_first(metadata, _SESSION_KEYS),
        user_id=_first(metadata, _USER_KEYS),
        tags=log.about.get("tags", ()),
        metadata=_own_metadata(metadata),
        tool_calls=steps.tool_calls(),
        rerankings=steps.rerankings(),
        is_agent=is_agent(metadata, steps),
        error=trace.noted.report() if status == "error" and trace.noted is not None else None,
    )


def _is_no_answer(trace: Trace) -> bool:
    """A bare search, prompt, parser or call of a model or tool is no answer to score; a tool that asks a model is one."""
    if trace.log.about.get("is_part") or isinstance(trace.root, (RetrieverRun, ModelRun)):
        return True
    return isinstance(trace.root, ToolRun) and not trace.models


def _says_nothing(trace: Trace, status: AnswerStatus, response: str | None) -> bool:
    """Nothing was asked of a model or a search, and no text came out: a prompt that was filled in, say."""
    return status == "complete" and response is None and not (trace.models or trace.searches or trace.recorded)


def _shows_documents(trace: Trace, response: str | None) -> bool:
    """No model was asked, and what came out is what a search found: a search with a formatter."""
    if response is None or trace.model_runs or trace.log.grouped or trace.recorded:
        return False
    return any(PromptText(response).find([entry.text for entry in trace.documents.values()], excerpts=False))


def _question(trace: Trace) -> str | None:
    found = [question_in(trace.inputs, trace.queries), question_in(trace.asked_before, trace.queries)]
    saved = [question_in(state, named_only=True) for state in trace.saved_states]
    found += [question for question in saved if question not in trace.queries]  # what a model asked its tools
    found += saved
    found += [question_in(state, trace.queries) for state in trace.saved_states]
    found += [run.query for run in trace.searches[:1]]
    return next((question for question in found if question is not None), None)


def _contexts(trace: Trace, question: str | None, response: str | None) -> tuple[RetrievedContext, ...] | None:
    """The documents in prompt order; `()` if none reached the prompt, None if they could not be observed.

    None also where it would take too long to say: a part of the contexts would make true answers look made up.
    """
    documents, is_complete = documents_behind(trace, question, response)
    found: dict[str, RetrievedContext] = {}
    for document, text, is_whole in documents:
        if text not in found:
            found[text] = as_context(document, text, truncated=not is_whole)
    for context in trace.recorded:
        found.setdefault(context.text, context)
    if not is_complete:
        return None
    if found:
        return tuple(found.values())
    if trace.unreadable or any(run.name in _REMOTE for run in trace.runs):
        return None
    observed = trace.documents or trace.empty_search or trace.carried_documents
    return () if observed or not trace.model_runs else None


def _first(metadata: Mapping[str, Any], keys: Iterable[str]) -> str | None:
    found = (metadata.get(key) for key in keys)
    return next((str(value) for value in found if isinstance(value, (str, int)) and value != ""), None)


def _own_metadata(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the program put there, not what the frameworks add for their own tracing."""
    own = plain_entries(metadata)
    return {key: value for key, value in own.items() if not key.startswith(("ls_", "langgraph_", "checkpoint", "__"))}
