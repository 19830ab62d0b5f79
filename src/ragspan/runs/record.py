"""Makes the record of a request from its log, with its tools, searches, rerankers and calls of models; run in the worker."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ragspan.capturing.log import RequestLog
from ragspan.capturing.snapshots import Opaque, Snapshot
from ragspan.matching import PromptTexts
from ragspan.provider_replies import facts_of
from ragspan.record_json import plain_entries
from ragspan.records import Generation, RagRecord, Reranking, Retrieval, RetrievedContext, ToolCall
from ragspan.runs.answers import question_in, status_and_response
from ragspan.runs.payloads import Call, Document
from ragspan.runs.payloads import Message as ChatMessage
from ragspan.runs.prompt_provenance import documents_behind
from ragspan.runs.trace import ModelRun, RetrieverRun, Run, SeenDocument, ToolRun, Trace, trace_of
from ragspan.step_texts import Message, ToolRequest

_SESSION_KEYS = ("session_id", "thread_id", "conversation_id", "langfuse_session_id")
_USER_KEYS = ("user_id", "langfuse_user_id")
_REMOTE = {"RemoteRunnable", "RemoteGraph"}
"""Steps that call a program elsewhere, which may search."""
_MAX_OF_A_KIND = 100
_ROLES = {"human": "user", "ai": "assistant"}
_AsContext = Callable[[SeenDocument], RetrievedContext]
_SOURCES = ("source", "file_name", "file_path", "url", "title")
_NEW_ORDER = "relevance_score"
"""Where rerankers write their score in a document's metadata."""


def record_of(log: RequestLog) -> RagRecord | None:
    """The record of a request; None if it answered nothing."""
    trace = trace_of(log)
    if not log.grouped and not trace.recorded and _is_no_answer(trace):
        return None
    status, response = status_and_response(trace)
    if response is None and status == "complete" and not (trace.models or trace.searches or trace.recorded):
        return None  # a prompt that was filled in, say
    if _shows_documents(trace, response):
        return None
    question = _question(trace)
    as_context = functools.cache(_as_context)  # most documents are found, and reach the prompt
    steps = Steps(trace.searches, trace.tools, trace.models, log.ended_ns, as_context)
    metadata = log.about.get("metadata", {})
    return RagRecord(
        question=question,
        contexts=_contexts(trace, question, response, as_context),
        response=response,
        status=status,
        error_type=trace.error if status == "error" else None,
        run_id=str(log.about["run_id"]) if "run_id" in log.about else None,
        framework=log.about.get("framework", "langchain"),
        name=trace.name,
        started_ns=log.started_ns,
        ended_ns=log.ended_ns,
        parent=log.anchor,
        retrievals=tuple(map(steps.retrieval, steps.searches)),
        generations=tuple(map(steps.generation, trace.models[:_MAX_OF_A_KIND])),
        session_id=first_of(metadata, _SESSION_KEYS),
        user_id=first_of(metadata, _USER_KEYS),
        tags=tuple(str.__str__(tag) for tag in log.about.get("tags", ()) if isinstance(tag, str)),
        metadata=_own_metadata(metadata),
        tool_calls=tuple(map(steps.tool_call, steps.tools)),
        rerankings=steps.rerankings(),
        is_agent=_is_agent(trace, metadata),
        error=trace.noted.report() if status == "error" and trace.noted is not None else None,
    )


def _is_no_answer(trace: Trace) -> bool:
    """A bare search, prompt, parser or call of a model or tool is no answer to score; a tool that asks a model is one."""
    if trace.log.about.get("run_type") in {"parser", "prompt"} or isinstance(trace.root, (RetrieverRun, ModelRun)):
        return True
    return isinstance(trace.root, ToolRun) and not trace.models


def _shows_documents(trace: Trace, response: str | None) -> bool:
    """No model was asked, and what came out is what a search found: a search with a formatter."""
    if response is None or trace.model_runs or trace.log.grouped or trace.recorded:
        return False
    return any(
        PromptTexts([response]).find([entry.text for entry in trace.documents.values()], excerpts=False, once=True)
    )


def _question(trace: Trace) -> str | None:
    found = [question_in(trace.inputs, trace.queries), question_in(trace.asked_before, trace.queries)]
    saved = [question_in(state, named_only=True) for state in trace.saved_states]
    found += [question for question in saved if question not in trace.queries]  # what a model asked its tools
    found += saved
    found += [question_in(state, trace.queries) for state in trace.saved_states]
    found += [run.query for run in trace.searches[:1]]
    return next((question for question in found if question is not None), None)


def _contexts(
    trace: Trace, question: str | None, response: str | None, as_context: _AsContext
) -> tuple[RetrievedContext, ...] | None:
    """The documents in prompt order; `()` if none reached the prompt, None if they could not be observed.

    None also if it would take too long to find out: with a part of the contexts, true answers would look made up.
    """
    documents, is_complete = documents_behind(trace, question, response)
    found: dict[str, RetrievedContext] = {}
    for seen, text, is_whole in documents:
        if text not in found:
            own = as_context(seen)
            found[text] = own if text is own.text and is_whole else replace(own, text=text, truncated=not is_whole)
    for context in trace.recorded:
        found.setdefault(context.text, context)
    if not is_complete:
        return None
    if found:
        return tuple(found.values())
    if trace.unreadable or any(run.name in _REMOTE for run in trace.runs.values()):
        return None
    observed = trace.documents or trace.empty_search or trace.carried_documents
    return () if observed or not trace.model_runs else None


def first_of(metadata: Mapping[str, Any], keys: Iterable[str]) -> str | None:
    """The first of these entries, as a text."""
    found = (metadata.get(key) for key in keys)
    return next((str(value) for value in found if isinstance(value, (str, int)) and value != ""), None)


def _own_metadata(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    """The program's own metadata, without what the frameworks add for their tracing."""
    own = plain_entries(metadata)
    return {key: value for key, value in own.items() if not key.startswith(("ls_", "langgraph_", "checkpoint", "__"))}


def _is_agent(trace: Trace, metadata: Mapping[str, Any]) -> bool:
    """Whether an agent answered: the framework says so, or a tool ran that a model had asked for."""
    asked = (tool.call_id is not None for tool in trace.tools)
    return metadata.get("ls_integration") == "langchain_create_agent" or any(asked)


class Steps:
    """The steps of one request as spans show them.

    A tool that returns what its only search found is that search, and no step of its own.

    Args:
        searches: in order of time, as all runs here.
        tools: the tools that ran.
        others: runs that make a tool more than a search if they are inside it, such as calls of models.
        ended_ns: when the request ended, and with it the steps that had not.
        as_context: makes a context of a document.
    """

    def __init__(
        self,
        searches: Sequence[RetrieverRun],
        tools: Sequence[ToolRun],
        others: Sequence[Run],
        ended_ns: int,
        as_context: _AsContext,
    ) -> None:
        self._all_searches = searches
        self._ended_ns = ended_ns
        self._as_context = as_context
        self.searches = [run for run in searches[:_MAX_OF_A_KIND] if not run.inside_search]
        pairs = [(_search_of(tool, self.searches, (*others, *tools)), tool) for tool in tools[:_MAX_OF_A_KIND]]
        self._is_tool = {search: tool for search, tool in pairs if search is not None}
        self.tools = [tool for search, tool in pairs if search is None]
        self._places: dict[Run, int] = {tool: place for place, tool in enumerate(self.tools)}

    def tool_call(self, run: ToolRun) -> ToolCall:
        return ToolCall(
            name=run.name,
            call_id=_text(run.call_id),
            arguments=_as_text(run.inputs),
            result=_as_text(run.result),
            **self.common(run),
        )

    def retrieval(self, run: RetrieverRun) -> Retrieval:
        tool, top_k = self._is_tool.get(run), run.metadata.get("top_k")
        return Retrieval(
            name=run.name,
            query=run.query,
            contexts=tuple(map(self._as_context, run.found)),
            span=run.span,
            data_source_id=_text(run.metadata.get("data_source_id")),
            top_k=top_k if type(top_k) is int else None,
            tool_name=None if tool is None else tool.name,
            tool_call_id=None if tool is None else _text(tool.call_id),
            **self.common(run),
        )

    def generation(self, run: ModelRun) -> Generation:
        facts = facts_of(run.told)
        return Generation(
            model=_text(run.model) or facts.response_model or run.name,
            provider=_text(run.provider),
            first_token_ns=run.first_token_ns,
            streamed=run.first_token_ns is not None,
            prompt=tuple(map(_message, run.prompt)),
            reply=_reply(run),
            **facts._asdict(),
            **self.common(run),
        )

    def rerankings(self) -> tuple[Reranking, ...]:
        """Of searches that call another one, and reorder or filter what it found, as LangChain's compression retriever does."""
        inner = [run for run in self._all_searches if run.inside_search and run.found]
        pairs = [(outer, [run for run in inner if run.parent is outer]) for outer in self.searches]
        return tuple(
            Reranking(
                name=outer.name,
                query=outer.query,
                given=_ordered(asked[0].found),
                contexts=_ordered(outer.found),
                is_filter=not _was_reranked(outer.found),
                **self.common(outer) | {"started_ns": asked[0].ended_ns},
            )
            for outer, asked in pairs
            if len(asked) == 1
            and outer.ended_ns
            and not outer.error
            and (_was_reranked(outer.found) or _was_filtered(asked[0].found, outer.found))
        )

    def common(self, run: Run) -> dict[str, Any]:
        """What all steps have."""
        tools_around = (self._places[around] for around in run.around() if around in self._places)
        return {
            "started_ns": run.started_ns,
            "ended_ns": run.ended_ns or self._ended_ns,
            "error_type": run.error,
            "error": None if run.noted is None else run.noted.report(),
            "within": next(tools_around, None),
        }


def _search_of(tool: ToolRun, searches: Sequence[RetrieverRun], others: Iterable[Run]) -> RetrieverRun | None:
    """The search that a tool consists of: nothing else is inside, and the tool returned what it found, or failed with it."""
    inside = [run for run in searches if run.is_within(tool)]
    if len(inside) != 1 or any(run.is_within(tool) for run in others):
        return None
    search = inside[0]
    if tool.error is not None:
        return search if search.error == tool.error else None
    result = tool.result if isinstance(tool.result, str) else ""
    return search if all(entry in tool.shown or entry.text in result for entry in search.found) else None


def context_of(document: Document, *, rank: int | None, score: float | None) -> RetrievedContext:
    """A document as a context."""
    metadata = plain_entries(document.metadata)
    return RetrievedContext(
        text=document.text,
        id=document.id,
        rank=rank,
        score=score,
        source=next((source for name in _SOURCES if (source := _text(metadata.get(name)))), None),
        metadata=metadata,
    )


def _as_context(seen: SeenDocument) -> RetrievedContext:
    return context_of(seen.document, rank=seen.rank, score=seen.score)


def _was_reranked(found: Sequence[SeenDocument]) -> bool:
    return bool(found) and all(_NEW_ORDER in entry.document.metadata for entry in found)


def _was_filtered(before: Sequence[SeenDocument], after: Sequence[SeenDocument]) -> bool:
    return {entry.text for entry in after} < {entry.text for entry in before}


def _ordered(found: Sequence[SeenDocument]) -> tuple[RetrievedContext, ...]:
    """Documents as a reranker received them, or returned them."""
    return tuple(
        context_of(entry.document, rank=rank, score=entry.document.metadata.get(_NEW_ORDER, entry.score))
        for rank, entry in enumerate(found)
    )


def _message(part: ChatMessage) -> Message:
    return Message(
        role=_ROLES.get(part.role, part.role),
        text=part.text,
        tool_requests=tuple(map(_request, part.calls or ())),
        tool_call_id=_text(part.call_id),
    )


def _reply(run: ModelRun) -> Message | None:
    """What the model said, or had said when its stream was closed."""
    if run.reply is None and not run.tokens:
        return None
    requests = () if run.reply is None else tuple(map(_request, run.reply.calls or ()))
    return Message(role="assistant", text=run.said, tool_requests=requests)


def _request(call: Call) -> ToolRequest:
    return ToolRequest(name=_text(call.name) or "", id=_text(call.id), arguments=_as_text(call.arguments))


def _as_text(value: Snapshot) -> str | None:
    """A payload as a text, or else as JSON; None if there is nothing to show."""
    if value is None or isinstance(value, (str, Opaque)):
        return _text(value)
    return json.dumps(value, ensure_ascii=False, default=_in_words)


def _in_words(value: Any) -> Any:
    if isinstance(value, (ChatMessage, Document)):
        return value.text
    return value.arguments if isinstance(value, Call) else "OPAQUE"


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
