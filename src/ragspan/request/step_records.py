"""The steps of one request as a record and its spans show them: tools, searches, rerankers and calls of models."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ragspan import field_names
from ragspan.messages import Message, ToolRequest
from ragspan.provider_replies import facts_of
from ragspan.record_json import plain_entries
from ragspan.records import Generation, Reranking, Retrieval, RetrievedContext, ToolCall
from ragspan.request.contents import Call, Document, PayloadMessage
from ragspan.request.tree import ModelStep, RerankStep, SearchStep, SeenDocument, Step, ToolStep
from ragspan.safe_copy import Opaque, Snapshot

ToContext = Callable[[SeenDocument], RetrievedContext]
"""Makes a context of a document."""

_MAX_OF_A_KIND = 100
_ROLES = {"human": "user", "ai": "assistant"}
_NEW_ORDER = "relevance_score"
"""Where rerankers write their score in a document's metadata."""


class StepRecords:
    """The steps of one request as spans show them.

    A tool that returns what its only search found is that search, and no step of its own.

    Args:
        searches: in order of time, as all runs here.
        tools: the tools that ran.
        others: runs that make a tool more than a search if they are inside it, such as calls of models.
        ended_ns: when the request ended, and with it the steps that had not.
        to_context: makes a context of a document.
    """

    def __init__(
        self,
        searches: Sequence[SearchStep],
        tools: Sequence[ToolStep],
        others: Sequence[Step],
        ended_ns: int,
        to_context: ToContext,
    ) -> None:
        self._all_searches = searches
        self._ended_ns = ended_ns
        self._messages: dict[tuple[str, str, str | None, str], Message] = {}
        self._to_context = to_context
        self.searches = [step for step in searches[:_MAX_OF_A_KIND] if not step.inside_search]
        pairs = [(_search_of(tool, self.searches, (*others, *tools)), tool) for tool in tools[:_MAX_OF_A_KIND]]
        self._is_tool = {search: tool for search, tool in pairs if search is not None}
        self.tools = [tool for search, tool in pairs if search is None]
        self._indexes: dict[Step, int] = {tool: index for index, tool in enumerate(self.tools)}

    def tool_call(self, step: ToolStep) -> ToolCall:
        return ToolCall(
            name=step.name,
            call_id=_text(step.call_id),
            arguments=_as_text(step.inputs),
            result=_as_text(step.result),
            **self.common(step),
        )

    def retrieval(self, step: SearchStep) -> Retrieval:
        tool, top_k = self._is_tool.get(step), step.metadata.get("top_k")
        return Retrieval(
            name=step.name,
            query=step.query,
            contexts=tuple(map(self._to_context, step.found)),
            span=step.span,
            data_source_id=_text(step.metadata.get("data_source_id")),
            top_k=top_k if type(top_k) is int else None,
            tool_name=None if tool is None else tool.name,
            tool_call_id=None if tool is None else _text(tool.call_id),
            **self.common(step),
        )

    def generation(self, step: ModelStep) -> Generation:
        facts = facts_of(step.provider_metadata)
        return Generation(
            model=_text(step.model) or facts.response_model or step.name,
            provider=_text(step.provider),
            first_token_ns=step.first_token_ns,
            streamed=step.streamed or step.first_token_ns is not None,
            prompt=tuple(map(self._message, step.prompt)),
            reply=_reply(step),
            **facts._asdict(),
            **self.common(step),
        )

    def _message(self, part: PayloadMessage) -> Message:
        """A message of a prompt; an agent's prompts repeat all earlier ones."""
        calls = [(call.name, call.id, call.arguments) for call in part.calls or ()]
        known = (part.role, part.text, _text(part.call_id), str(calls))
        if known not in self._messages:
            self._messages[known] = _message(part)
        return self._messages[known]

    def rerankings(self, seen: Sequence[RerankStep] = ()) -> tuple[Reranking, ...]:
        """The rerankings of searches that call another one, and reorder or filter what it found, as LangChain's compression retriever does.

        Args:
            seen: steps that were seen to put documents in order; they count where no search did.
        """
        inner = [step for step in self._all_searches if step.inside_search and step.found]
        pairs = [(outer, [step for step in inner if step.parent is outer]) for outer in self.searches]
        shown = [
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
        ]
        shown = shown or [
            Reranking(
                name=step.name,
                query=step.query,
                given=_ordered(step.given),
                contexts=_ordered(step.found),
                model=step.model,
                top_k=step.top_k,
                is_filter=step.is_filter,
                **self.common(step),
            )
            for step in seen[:_MAX_OF_A_KIND]
            if not step.is_filter or (step.ended_ns and not step.error and len(step.found) < len(step.given))
        ]
        return tuple(shown)

    def common(self, step: Step) -> dict[str, Any]:
        """What all steps have."""
        tools_around = (self._indexes[around] for around in step.around() if around in self._indexes)
        return {
            "started_ns": step.started_ns,
            "ended_ns": step.ended_ns or self._ended_ns,
            "error_type": step.error,
            "error": None if step.noted is None else step.noted.report(),
            "within": next(tools_around, None),
        }


def _search_of(tool: ToolStep, searches: Sequence[SearchStep], others: Iterable[Step]) -> SearchStep | None:
    """The search that a tool consists of: nothing else is inside, and the tool returned what it found, or failed with it."""
    inside = [step for step in searches if step.is_within(tool)]
    if len(inside) != 1 or any(step.is_within(tool) for step in others):
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
        source=next((source for name in field_names.SOURCE if (source := _text(metadata.get(name)))), None),
        metadata=metadata,
    )


def context_of_seen(seen: SeenDocument) -> RetrievedContext:
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


def _message(part: PayloadMessage) -> Message:
    return Message(
        role=_ROLES.get(part.role, part.role),
        text=part.text,
        tool_requests=tuple(map(_request, part.calls or ())),
        tool_call_id=_text(part.call_id),
    )


def _reply(step: ModelStep) -> Message | None:
    """What the model said, or had said when its stream was closed."""
    if step.reply is None and not step.tokens:
        return None
    requests = () if step.reply is None else tuple(map(_request, step.reply.calls or ()))
    return Message(role="assistant", text=step.said, tool_requests=requests)


def _request(call: Call) -> ToolRequest:
    return ToolRequest(name=_text(call.name) or "", id=_text(call.id), arguments=_as_text(call.arguments))


def _as_text(value: Snapshot) -> str | None:
    """A payload as a text, or else as JSON; None if there is nothing to show."""
    if value is None or isinstance(value, (str, Opaque)):
        return _text(value)
    return json.dumps(value, ensure_ascii=False, default=_in_words)


def _in_words(value: Any) -> Any:
    if isinstance(value, (PayloadMessage, Document)):
        return value.text
    return value.arguments if isinstance(value, Call) else "OPAQUE"


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
