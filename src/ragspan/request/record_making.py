"""Makes the record of a request from its log or tree, with its tools, searches, rerankers and calls of models; in the worker."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from ragspan import field_names
from ragspan.capturing.log import RequestLog
from ragspan.messages import Message, ToolRequest
from ragspan.provider_replies import facts_of
from ragspan.records import Generation, RagRecord, Reranking, Retrieval, RetrievedContext, ToolCall
from ragspan.request.contents import Call, Document, PayloadMessage
from ragspan.request.documents import SeenDocuments, documents_in
from ragspan.request.evidence import evidence_of
from ragspan.request.question_and_response import answer_of, question_of
from ragspan.request.steps import ModelStep, RerankStep, SearchStep, SeenDocument, Step, SynthesisStep, ToolStep
from ragspan.request.tree import RequestTree, tree_of
from ragspan.safe_copy import Opaque, Snapshot, kept_entries, text_of
from ragspan.turns import give_turn

_MAX_OF_A_KIND = 100
_TRACING = ("ls_", "langgraph_", "checkpoint", "__", "llamaindex.")
"""So begin the names of what the frameworks add for their tracing."""
_ROLES = {"human": "user", "ai": "assistant"}
_NEW_ORDER = "relevance_score"  # where rerankers write their score in a document's metadata


def record_of_log(log: RequestLog) -> RagRecord | None:
    """The record of a request; None if it answered nothing."""
    tree = tree_of(log)
    give_turn()
    return record_of(tree)


def record_of(tree: RequestTree) -> RagRecord | None:
    """The record of a request; None if it answered nothing."""
    if not (tree.grouped or tree.recorded or tree.found_nothing) and _is_bare(tree):
        return None
    seen = SeenDocuments(tree)
    question = question_of(tree, seen.queries)
    answer = answer_of(tree, seen)
    if answer is None:
        return None
    status, response = answer
    give_turn()
    evidence = evidence_of(tree, seen, question, response)
    give_turn()
    given = tree.metadata
    return RagRecord(
        question=question,
        response=response,
        status=status,
        error_type=tree.error if status == "error" else None,
        error=tree.noted if status == "error" else None,
        run_id=tree.run_id,
        framework=tree.framework,
        name=tree.steps[0].name if tree.steps else "",
        started_ns=tree.started_ns,
        ended_ns=tree.ended_ns,
        parent=tree.anchor,
        session_id=field_names.identifier(map(given.get, field_names.SESSION)) if given else None,
        user_id=field_names.identifier(map(given.get, field_names.USER)) if given else None,
        tags=tuple(str.__str__(tag) for tag in tree.tags if isinstance(tag, str)),
        metadata={key: one for key, one in kept_entries(given).items() if not key.startswith(_TRACING)},
        is_agent=given.get("ls_integration") == "langchain_create_agent"
        or any(tool.call_id is not None for tool in tree.all_of(ToolStep)),
        **_StepRecords(tree).fields(),
        **evidence,
    )


def _is_bare(tree: RequestTree) -> bool:
    """A bare search, prompt, parser or call of a model or tool is not an answer to score; a tool that asks a model is one."""
    if tree.run_type in {"parser", "prompt"} or isinstance(tree.root, (SearchStep, ModelStep)):
        return True
    return isinstance(tree.root, ToolStep) and not tree.all_of(ModelStep)


class _StepRecords:
    """The steps of a request as spans show them. A tool that returns what its only search found is that search, and no step of its own."""

    def __init__(self, tree: RequestTree) -> None:
        self._tree = tree
        self._messages: dict[Message, Message] = {}
        self._all_searches = tree.all_of(SearchStep)
        self._searches = [step for step in self._all_searches[:_MAX_OF_A_KIND] if not step.inside_search]
        tools = tree.all_of(ToolStep)
        others = [*tree.all_of(ModelStep), *tree.all_of(SynthesisStep), *tools] if tools else []
        self._tool_of: dict[SearchStep, ToolStep] = {}
        self._tools: dict[Step, int] = {}
        """The tools that are steps of their own, each with its place among these."""
        for tool in tools[:_MAX_OF_A_KIND]:
            if (search := _search_of(tool, self._searches, others)) is not None:
                self._tool_of[search] = tool
            else:
                self._tools[tool] = len(self._tools)

    def fields(self) -> dict[str, tuple[Any, ...]]:
        """The steps by the names of a record's fields."""
        return {
            "retrievals": tuple(map(self._retrieval, self._searches)),
            "generations": tuple(map(self._generation, self._tree.all_of(ModelStep)[:_MAX_OF_A_KIND])),
            "tool_calls": tuple(self._tool_call(tool) for tool in self._tools if isinstance(tool, ToolStep)),
            "rerankings": self._rerankings(),
        }

    def _tool_call(self, step: ToolStep) -> ToolCall:
        return ToolCall(
            name=step.name,
            call_id=text_of(step.call_id),
            arguments=_as_text(step.inputs),
            result=_as_text(step.result),
            **self._common(step),
        )

    def _retrieval(self, step: SearchStep) -> Retrieval:
        tool, top_k = self._tool_of.get(step), step.metadata.get("top_k")
        return Retrieval(
            name=step.name,
            query=step.query,
            contexts=tuple(entry.context for entry in step.found),
            span=step.span,
            data_source_id=text_of(step.metadata.get("data_source_id")),
            top_k=top_k if type(top_k) is int else None,
            tool_name=None if tool is None else tool.name,
            tool_call_id=None if tool is None else text_of(tool.call_id),
            **self._common(step),
        )

    def _generation(self, step: ModelStep) -> Generation:
        facts = facts_of(step.provider_metadata)
        requests = () if step.reply is None else _requests(step.reply)
        has_reply = step.reply is not None or bool(step.tokens)
        return Generation(
            model=text_of(step.model) or facts.response_model or step.name,
            provider=text_of(step.provider),
            first_token_ns=step.first_token_ns,
            streamed=step.streamed or step.first_token_ns is not None,
            prompt=tuple(map(self._message, step.prompt)),
            reply=Message(role="assistant", text=step.said, tool_requests=requests) if has_reply else None,
            **facts._asdict(),
            **self._common(step),
        )

    def _message(self, part: PayloadMessage) -> Message:
        """A message of a prompt; an agent's prompts repeat all earlier ones."""
        role, call_id = _ROLES.get(part.role, part.role), text_of(part.call_id)
        message = Message(role=role, text=part.text, tool_requests=_requests(part), tool_call_id=call_id)
        return self._messages.setdefault(message, message)

    def _rerankings(self) -> tuple[Reranking, ...]:
        """The rerankings: searches that call another one, and reorder or filter what it found, or else steps of their own."""
        inner = [step for step in self._all_searches if step.inside_search and step.found]
        steps: list[RerankStep] = []
        for outer in self._searches if inner else ():
            asked = [step for step in inner if step.parent is outer]
            if len(asked) == 1 and outer.ended_ns and not outer.error and isinstance(outer.output, list):
                given, found = asked[0].found, outer.found
                is_reranked = bool(found) and all(_NEW_ORDER in entry.document.metadata for entry in found)
                if is_reranked or {entry.text for entry in found} < {entry.text for entry in given}:
                    step = RerankStep(
                        name=outer.name,
                        parent=outer.parent,
                        started_ns=asked[0].ended_ns,
                        ended_ns=outer.ended_ns,
                        query=outer.query,
                        inputs=[[entry.document, entry.score] for entry in given],
                        output=[[entry.document, entry.score] for entry in found],
                        is_filter=not is_reranked,
                    )
                    steps.append(step)
        return tuple(
            self._reranking(step)
            for step in steps or self._tree.all_of(RerankStep)[:_MAX_OF_A_KIND]
            if not step.is_filter
            or (step.ended_ns and not step.error and len(_listed(step.output)) < len(_listed(step.inputs)))
        )

    def _reranking(self, step: RerankStep) -> Reranking:
        return Reranking(
            name=step.name,
            query=step.query,
            given=_listed(step.inputs),
            contexts=_listed(step.output),
            model=step.model,
            top_k=step.top_k,
            is_filter=step.is_filter,
            **self._common(step),
        )

    def _common(self, step: Step) -> dict[str, Any]:
        around = step.ancestors() if self._tools else ()
        return {
            "started_ns": step.started_ns,
            "ended_ns": step.ended_ns or self._tree.ended_ns,
            "error_type": step.error,
            "error": step.noted,
            "within": next((self._tools[outer] for outer in around if outer in self._tools), None),
        }


def _search_of(tool: ToolStep, searches: Sequence[SearchStep], others: Iterable[Step]) -> SearchStep | None:
    """The search that a tool consists of: nothing else is inside, and the tool returned what it found, or failed as it did."""
    inside = [step for step in searches if step.is_within(tool)]
    if len(inside) != 1 or any(step.is_within(tool) for step in others) or tool.error != inside[0].error:
        return None
    result = tool.result if isinstance(tool.result, str) else ""
    return inside[0] if all(entry in tool.shown or entry.text in result for entry in inside[0].found) else None


def _listed(documents: Snapshot) -> tuple[RetrievedContext, ...]:
    """Documents in the order of a reranker, with its scores."""
    pairs = [pair for found in documents_in(documents) for pair in found]
    return tuple(
        SeenDocument(document, rank, document.metadata.get(_NEW_ORDER, score)).context
        for rank, (document, score) in enumerate(pairs)
    )


def _requests(message: PayloadMessage) -> tuple[ToolRequest, ...]:
    if not message.calls:
        return ()  # as mostly
    return tuple(
        ToolRequest(name=text_of(call.name) or "", id=text_of(call.id), arguments=_as_text(call.arguments))
        for call in message.calls
    )


def _as_text(value: Snapshot) -> str | None:
    """A payload as a text, or else as JSON; None if there is nothing to show."""
    if value is None or isinstance(value, (str, Opaque)):
        return text_of(value)
    return json.dumps(value, ensure_ascii=False, default=_in_words)


def _in_words(value: Any) -> Any:
    if isinstance(value, (PayloadMessage, Document)):
        return value.text
    return value.arguments if isinstance(value, Call) else "OPAQUE"
