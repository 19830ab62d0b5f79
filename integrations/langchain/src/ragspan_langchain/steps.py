"""The steps of a request as spans show them: its tools, searches, rerankers and calls of models; runs in the worker."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ragspan.capturing.snapshots import Opaque, Snapshot
from ragspan.provider_replies import facts_of
from ragspan.records import Generation, Reranking, Retrieval, RetrievedContext, ToolCall, plain_entries
from ragspan.step_texts import ErrorReport, Message, NotedError, ToolRequest
from ragspan_langchain.payloads import Call, Document
from ragspan_langchain.payloads import Message as ChatMessage
from ragspan_langchain.trace import ModelRun, PromptPart, RetrieverRun, Run, SeenDocument, ToolRun, Trace

_MAX_OF_A_KIND = 100
_ROLES = {"human": "user", "ai": "assistant"}
_NEW_ORDER = "relevance_score"
"""Where rerankers note their figure in a document's metadata."""


class Steps:
    """The steps of one request.

    A tool that hands on what its only search found is that search, and no step of its own.
    """

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        searches = [run for run in trace.searches[:_MAX_OF_A_KIND] if not run.inside_search]
        tools = trace.tools[:_MAX_OF_A_KIND]
        self._is_tool = {search: tool for tool in tools if (search := _search_of(tool, searches, trace)) is not None}
        self._searches = searches
        merged = set(self._is_tool.values())
        self._tools = [tool for tool in tools if tool not in merged]
        self._places = {tool: place for place, tool in enumerate(self._tools)}
        self.asked_for_tools = any(tool.call_id is not None for tool in tools)
        """A model chose what was done."""

    def tool_calls(self) -> tuple[ToolCall, ...]:
        return tuple(
            ToolCall(
                name=run.name,
                started_ns=run.started_ns,
                ended_ns=run.ended_ns or self._trace.log.ended_ns,
                call_id=_text(run.call_id),
                arguments=_as_text(run.inputs),
                result=_as_text(run.result),
                error_type=run.error,
                error=_report(run.noted),
                within=self._within(run),
            )
            for run in self._tools
        )

    def retrievals(self) -> tuple[Retrieval, ...]:
        return tuple(self._retrieval(run, self._is_tool.get(run)) for run in self._searches)

    def rerankings(self) -> tuple[Reranking, ...]:
        """Of searches that ask another one and order anew what it found, as LangChain's compression retriever does."""
        inner = [run for run in self._trace.searches if run.inside_search and run.found]
        pairs = [(outer, [run for run in inner if run.parent is outer]) for outer in self._searches]
        return tuple(
            Reranking(
                name=outer.name,
                query=outer.query,
                started_ns=asked[0].ended_ns,
                ended_ns=outer.ended_ns,
                given=_documents(asked[0].found),
                contexts=_documents(outer.found),
                within=self._within(outer),
            )
            for outer, asked in pairs
            if len(asked) == 1 and outer.ended_ns and _was_reranked(outer.found)
        )

    def generations(self) -> tuple[Generation, ...]:
        return tuple(self._generation(run) for run in self._trace.models[:_MAX_OF_A_KIND])

    def _retrieval(self, run: RetrieverRun, tool: ToolRun | None) -> Retrieval:
        top_k = run.metadata.get("top_k")
        return Retrieval(
            name=run.name,
            query=run.query,
            started_ns=run.started_ns,
            ended_ns=run.ended_ns or self._trace.log.ended_ns,
            contexts=tuple(as_context(entry, entry.text) for entry in run.found),
            error_type=run.error,
            span=run.span,
            data_source_id=_text(run.metadata.get("data_source_id")),
            top_k=top_k if type(top_k) is int else None,
            tool_name=None if tool is None else tool.name,
            tool_call_id=None if tool is None else _text(tool.call_id),
            error=_report(run.noted),
            within=self._within(run),
        )

    def _generation(self, run: ModelRun) -> Generation:
        facts = facts_of(run.reply.about if run.reply is not None else ())
        return Generation(
            model=_text(run.model) or facts.model or run.name,
            provider=_text(run.provider),
            started_ns=run.started_ns,
            ended_ns=run.ended_ns or self._trace.log.ended_ns,
            first_token_ns=run.first_token_ns,
            input_tokens=facts.input_tokens,
            output_tokens=facts.output_tokens,
            finish_reason=facts.finish_reason,
            error_type=run.error,
            response_id=facts.response_id,
            response_model=facts.model,
            cached_tokens=facts.cached_tokens,
            streamed=run.first_token_ns is not None,
            prompt=tuple(map(_message, run.prompt.parts)),
            reply=_reply(run),
            error=_report(run.noted),
            within=self._within(run),
        )

    def _within(self, run: Run) -> int | None:
        """The place of the innermost tool around a run."""
        around = run.parent
        while around is not None:
            if isinstance(around, ToolRun) and around in self._places:
                return self._places[around]
            around = around.parent
        return None


def _search_of(tool: ToolRun, searches: Sequence[RetrieverRun], trace: Trace) -> RetrieverRun | None:
    """The search that a tool is: the only thing in it, and the tool gave back what it found, or failed with it."""
    inside = [run for run in searches if run.is_within(tool)]
    if len(inside) != 1 or any(run.is_within(tool) for run in (*trace.models, *trace.tools)):
        return None
    search = inside[0]
    if tool.error is not None:
        return search if search.error == tool.error else None
    shown = {*tool.shown}
    result = tool.result if isinstance(tool.result, str) else ""
    return search if all(entry in shown or entry.text in result for entry in search.found) else None


def as_context(entry: SeenDocument, text: str, *, truncated: bool = False) -> RetrievedContext:
    """A document as a context."""
    source = entry.metadata.get("source")
    return RetrievedContext(
        text=text,
        id=entry.id,
        rank=entry.rank,
        score=entry.score,
        source=source if isinstance(source, str) else None,
        truncated=truncated,
        metadata=plain_entries(entry.metadata),
    )


def _was_reranked(found: Sequence[SeenDocument]) -> bool:
    return bool(found) and all(_NEW_ORDER in entry.metadata for entry in found)


def _documents(found: Sequence[SeenDocument]) -> tuple[RetrievedContext, ...]:
    return tuple(
        RetrievedContext(text=entry.text, id=entry.id, rank=rank, score=entry.metadata.get(_NEW_ORDER, entry.score))
        for rank, entry in enumerate(found)
    )


def _message(part: PromptPart) -> Message:
    return Message(
        role=_ROLES.get(part.role, part.role),
        text=part.text,
        tool_requests=tuple(map(_request, part.calls)),
        tool_call_id=_text(part.call_id),
    )


def _reply(run: ModelRun) -> Message | None:
    """What the model said, or had said when it was left."""
    if run.reply is None and not run.tokens:
        return None
    requests = () if run.reply is None else tuple(map(_request, run.reply.requests))
    return Message(role="assistant", text=run.said, tool_requests=requests)


def _request(call: Call) -> ToolRequest:
    return ToolRequest(name=_text(call.name) or "", id=_text(call.id), arguments=_as_text(call.arguments))


def _as_text(value: Snapshot) -> str | None:
    """A payload as a text, or else as JSON; None where there is nothing to show."""
    if isinstance(value, str):
        return value
    return (
        None if value is None or isinstance(value, Opaque) else json.dumps(value, ensure_ascii=False, default=_in_words)
    )


def _in_words(value: Any) -> Any:
    if isinstance(value, (ChatMessage, Document)):
        return value.text
    return value.arguments if isinstance(value, Call) else "OPAQUE"


def _report(noted: NotedError | None) -> ErrorReport | None:
    return None if noted is None else noted.report()


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def is_agent(metadata: Mapping[str, Any], steps: Steps) -> bool:
    """Whether an agent answered: the framework says so, or a tool ran that a model had asked for."""
    return metadata.get("ls_integration") == "langchain_create_agent" or steps.asked_for_tools
