"""Spans of OpenTelemetry's GenAI conventions, `gen_ai.*`, and Traceloop's, which adds `traceloop.entity.input` and `.output`.

The conventions name kinds by `gen_ai.operation.name`, and hold texts where content capture is on. Traceloop's older releases
write messages as `gen_ai.prompt.0.content`, and its chains are tasks and workflows with their payloads as JSON.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ragspan.request import NO_INPUT_YET, ModelStep, PayloadMessage, Step, ToolStep
from ragspan.safe_copy import OPAQUE
from ragspan_receiver.readers.payloads import (
    Payloads,
    arguments_in,
    as_text,
    chunks_in,
    json_of,
    numbered,
    query_in,
    text,
    whole,
)
from ragspan_receiver.readers.steps import Kind, ReadSpan
from ragspan_receiver.spans import TracedSpan

_OPERATIONS: dict[str, Kind | None] = {
    "chat": "model",
    "completion": "model",
    "text_completion": "model",
    "generate_content": "model",
    "retrieval": "retriever",
    "retrieve": "retriever",
    "vector_db_retrieve": "retriever",
    "rerank": "reranker",
    "execute_tool": "tool",
    "invoke_agent": "agent",
    "invoke_workflow": "chain",
    "execute_task": "chain",
    "evaluate": "ignored",
    "create_agent": None,
    "embeddings": None,
    "embedding": None,
}
_ENTITIES: dict[str, Kind] = {"workflow": "chain", "task": "chain", "agent": "agent", "tool": "tool"}
_ENDS: dict[Kind, tuple[str, ...]] = {
    "retriever": ("retriever",),
    "reranker": ("rerank", "reranker", "postprocessor"),
    "ignored": ("evaluator",),
}
"""Endings of the names of those Traceloop tasks that are more than chains."""
_EVENTS = {f"gen_ai.{role}.message": role for role in ("system", "user", "assistant", "tool")}
_PROPERTIES = "traceloop.association.properties."


def is_one(span: TracedSpan) -> bool:
    """Whether a span follows one of these conventions."""
    return any(name in span.attributes for name in ("gen_ai.operation.name", "traceloop.span.kind", "llm.request.type"))


def knows(span: TracedSpan) -> bool:
    """Whether the span's operation is one of those that are known, also if it is not a step."""
    return _operation(span) in _OPERATIONS or str(span.attributes.get("traceloop.span.kind")) in _ENTITIES


def _operation(span: TracedSpan) -> str:
    return str(span.attributes.get("gen_ai.operation.name") or span.attributes.get("llm.request.type")).lower()


def _kind_of(span: TracedSpan, name: str) -> Kind | None:
    entity = _ENTITIES.get(str(span.attributes.get("traceloop.span.kind")))
    kind = _OPERATIONS.get(_operation(span), entity)
    if kind == "agent" and entity == "chain":
        kind = "chain"  # Traceloop calls every outermost chain an agent
    if kind != "chain" or entity is None:
        return kind
    if "embedding" in name.lower():
        return None
    return next((found for found, ends in _ENDS.items() if name.lower().endswith(ends)), kind)


def read(span: TracedSpan, payloads: Payloads) -> ReadSpan | None:
    """The step of a span; None for embeddings, and for an agent that is only created."""
    about = span.attributes
    named = text(about, "traceloop.entity.name", "gen_ai.tool.name", "gen_ai.agent.name", "gen_ai.workflow.name") or ""
    named = named.removesuffix(".task").removesuffix(".workflow")
    kind = _kind_of(span, named)
    if kind is None:
        return None
    framework = span.scope.rpartition(".")[2]
    given, output = json_of(about.get("traceloop.entity.input")), about.get("traceloop.entity.output")
    gave = output if json_of(output) is None else json_of(output)
    said = next((gave[key] for key in ("outputs", "output") if key in gave), gave) if isinstance(gave, dict) else gave
    read = ReadSpan(
        span=span,
        chain=Step(
            name=named or span.name,
            parent=None,
            started_ns=span.start_ns,
            inputs=payloads.snapshot(_given(given, gave)) if given is not None else OPAQUE,
            output=payloads.read(said),
        ),
        kind=kind,
        framework="llama_index" if framework == "llamaindex" else framework,
        metadata={key.removeprefix(_PROPERTIES): one for key, one in about.items() if key.startswith(_PROPERTIES)},
    )
    if kind == "model":
        _read_model(read, payloads)
    elif kind in {"retriever", "reranker"}:
        _read_search(read, payloads, gave)
    elif kind == "tool":
        inputs, output = read.chain.inputs, read.chain.output
        inputs = payloads.read(about.get("gen_ai.tool.call.arguments")) if inputs is OPAQUE else inputs
        output = payloads.read(about.get("gen_ai.tool.call.result")) if output is OPAQUE else output
        call_id = text(about, "gen_ai.tool.call.id") or getattr(output, "call_id", None)
        read.become(ToolStep, inputs=inputs, output=output, call_id=call_id)
    else:
        _read_chain(read, payloads, gave)
    return read


def _given(data: Any, gave: Any) -> Any:
    """What a step was called with, without what Traceloop writes around it; what a stream was, comes with its end."""
    if not isinstance(data, dict):
        return data
    if "inputs" in data or "input_str" in data:
        inputs = data.get("inputs", data.get("input_str"))
        beside = gave.get("kwargs") if isinstance(gave, dict) and inputs == NO_INPUT_YET else None
        return beside.get("inputs", inputs) if isinstance(beside, dict) else inputs
    return arguments_in(data)


def _read_chain(read: ReadSpan, payloads: Payloads, gave: Any) -> None:
    """A chain, a workflow or an agent, with messages by the conventions; or a task of LlamaIndex, whose payloads show its kind."""
    chain = read.chain
    query, found = query_in(chain.inputs), payloads.documents_in(gave) if isinstance(gave, list) else []
    if query and found:
        if isinstance(chain.inputs, dict) and "nodes" in chain.inputs:
            read.become_reranker((), found, query=query)
        else:
            read.become_search(query, found)
        return
    if isinstance(gave, dict) and {"text", "logprobs"} <= gave.keys() and isinstance(chain.inputs, str):
        reply = PayloadMessage("ai", as_text(gave["text"]) or "")
        read.become(ModelStep, inputs=[PayloadMessage("human", chain.inputs)], reply=reply)
        return
    asked, said = _prompt(read.span, payloads), _replies(read.span, payloads)
    if chain.inputs is OPAQUE and any(part.role != "system" for part in asked):
        # OpenTelemetry's own instrumentation of LangChain writes a state as a text.
        fields = payloads.read(asked[-1].text)
        chain.inputs = fields if isinstance(fields, dict) else {"messages": asked}
    if said and chain.output is OPAQUE:
        chain.output = said[-1]
    read.written = chunks_in(chain.inputs)


def _read_model(read: ReadSpan, payloads: Payloads) -> None:
    about = read.span.attributes
    replies = _replies(read.span, payloads)
    names = [text(about, f"gen_ai.{side}.model") for side in ("request", "response")]
    asked, answered = (None if name == "unknown" else name for name in names)
    reasons = about.get("gen_ai.response.finish_reasons")
    said = {
        "input_tokens": whole(about, "gen_ai.usage.input_tokens"),
        "output_tokens": whole(about, "gen_ai.usage.output_tokens"),
        "cached_tokens": whole(about, "gen_ai.usage.cache_read.input_tokens"),
        "model": answered,
        "id": text(about, "gen_ai.response.id"),
        "finish_reason": reasons[0] if isinstance(reasons, list) and reasons else None,
    }
    read.become(
        ModelStep,
        inputs=_prompt(read.span, payloads),
        reply=replies[0] if replies else None,
        model=asked,
        provider=text(about, "gen_ai.provider.name", "gen_ai.system"),
        provider_metadata=[said],
    )


def _read_search(read: ReadSpan, payloads: Payloads, gave: Any) -> None:
    about = read.span.attributes
    query = text(about, "gen_ai.retrieval.query.text") or query_in(read.chain.inputs)
    top_k = whole(about, "gen_ai.retrieval.top_k", "gen_ai.request.top_k")
    listed = json_of(about.get("gen_ai.retrieval.documents"))
    if listed is None:
        listed = gave.get("documents") if isinstance(gave, dict) else gave
    found = payloads.documents_in(listed, loosely=True) if isinstance(listed, list) else []
    shown = found if found or listed == [] else None
    if read.kind == "reranker":
        read.become_reranker((), shown, query=query, top_k=top_k)
    else:
        read.become_search(query, shown, top_k=top_k, data_source_id=text(about, "gen_ai.data_source.id"))


def _prompt(span: TracedSpan, payloads: Payloads) -> list[PayloadMessage]:
    """The system's instructions and the messages that a model or an agent was given."""
    system = [part.get("content") for part in _parts(_content(span, "gen_ai.system_instructions"))]
    messages = [PayloadMessage("system", each) for each in system if isinstance(each, str)]
    given = _messages(_content(span, "gen_ai.input.messages"), payloads)
    given = given or [_numbered(one, payloads) for one in numbered(span.attributes, "gen_ai.prompt")]
    return messages + (given or list(_in_events(span, payloads)))


def _replies(span: TracedSpan, payloads: Payloads) -> list[PayloadMessage]:
    """The messages that it answered with."""
    said = _messages(_content(span, "gen_ai.output.messages"), payloads)
    said = said or [_numbered(one, payloads, "assistant") for one in numbered(span.attributes, "gen_ai.completion")]
    return said or list(_in_events(span, payloads, replies=True))


def _in_events(span: TracedSpan, payloads: Payloads, *, replies: bool = False) -> Iterator[PayloadMessage]:
    """The messages in events of their own, one each, as the conventions had them from 1.28 to 1.36."""
    for event in span.events:
        role = ("assistant" if event.name == "gen_ai.choice" else None) if replies else _EVENTS.get(event.name)
        if role is None:
            continue
        content = json_of(event.attributes.get("gen_ai.event.content"))
        body: Mapping[str, Any] = content if isinstance(content, dict) else event.attributes
        if replies:
            said = json_of(body.get("message")) or body.get("message", body.get("content"))
            body = said if isinstance(said, dict) else {"content": said}
        yield _numbered(body, payloads, role)


def _content(span: TracedSpan, name: str) -> Any:
    """An attribute of the span, or else of an event that carries it."""
    own = span.attributes.get(name)
    events = (event.attributes.get(name) for event in span.events)
    return json_of(own) if own is not None else next((json_of(each) for each in events if each is not None), None)


def _parts(value: Any) -> list[Mapping[str, Any]]:
    return [part for part in value if isinstance(part, Mapping)] if isinstance(value, list) else []


def _messages(value: Any, payloads: Payloads) -> list[PayloadMessage]:
    return [payloads.message(one, str(one.get("role", "user"))) for one in _parts(value)]


def _numbered(fields: Mapping[str, Any], payloads: Payloads, role: str = "user") -> PayloadMessage:
    """A message of attributes named `gen_ai.prompt.0.role` and the like, or of an event."""
    parts = json_of(fields.get("content"))
    content = parts if isinstance(parts, list) else as_text(fields.get("content"))
    calls = numbered(fields, "tool_calls") or json_of(fields.get("tool_calls"))
    call_id = fields.get("tool_call_id", fields.get("id"))
    about = {"content": content or "", "tool_calls": calls, "tool_call_id": call_id}
    return payloads.message(about, str(fields.get("role") or role))
