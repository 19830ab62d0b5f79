"""Spans of OpenTelemetry's GenAI conventions, `gen_ai.*`, and Traceloop's, which adds `traceloop.entity.input` and `.output`.

The conventions name kinds by `gen_ai.operation.name`, and hold texts where content capture is on. Traceloop's older releases
write messages as `gen_ai.prompt.0.content`, and its chains are tasks and workflows with their payloads as JSON.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ragspan.capturing import OPAQUE
from ragspan.request import NO_INPUT_YET, ModelStep, PayloadMessage, Step, ToolStep
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
_CHOICE = "gen_ai.choice"
_FRAMEWORKS = {"llamaindex": "llama_index"}
_PROPERTIES = "traceloop.association.properties."


def is_one(span: TracedSpan) -> bool:
    """Whether a span follows one of these conventions."""
    return any(name in span.attributes for name in ("gen_ai.operation.name", "traceloop.span.kind", "llm.request.type"))


def read(span: TracedSpan, payloads: Payloads) -> ReadSpan | None:
    """The step of a span; None for embeddings, and for an agent that is only created."""
    attributes = span.attributes
    kind = _kind_of(span)
    if kind is None:
        return None
    framework = span.scope.rpartition(".")[2]
    given, output = json_of(attributes.get("traceloop.entity.input")), attributes.get("traceloop.entity.output")
    gave = output if json_of(output) is None else json_of(output)
    read = ReadSpan(
        span=span,
        chain=Step(
            name=_name_of(attributes) or span.name,
            parent=None,
            started_ns=span.start_ns,
            inputs=payloads.snapshot(_given(given, gave)) if given is not None else OPAQUE,
            output=payloads.read(_gave(gave)),
        ),
        kind=kind,
        framework=_FRAMEWORKS.get(framework, framework),
        metadata={key.removeprefix(_PROPERTIES): one for key, one in attributes.items() if key.startswith(_PROPERTIES)},
    )
    _DETAILS.get(kind, _read_chain)(read, payloads, gave)
    return read


def knows(span: TracedSpan) -> bool:
    """Whether the span's operation is one of those that are known, also if it is not a step."""
    attributes = span.attributes
    operation = str(attributes.get("gen_ai.operation.name") or attributes.get("llm.request.type")).lower()
    return operation in _OPERATIONS or str(attributes.get("traceloop.span.kind")) in _ENTITIES


def _kind_of(span: TracedSpan) -> Kind | None:
    attributes = span.attributes
    operation = str(attributes.get("gen_ai.operation.name") or attributes.get("llm.request.type")).lower()
    entity = _ENTITIES.get(str(attributes.get("traceloop.span.kind")))
    kind = _OPERATIONS.get(operation, entity)
    if kind == "agent" and entity == "chain":
        kind = "chain"  # Traceloop calls every outermost chain an agent
    if kind != "chain" or entity is None:
        return kind
    name = (_name_of(attributes) or "").lower()
    if "embedding" in name:
        return None
    return next((found for found, ends in _ENDS.items() if name.endswith(ends)), kind)


def _name_of(attributes: Mapping[str, Any]) -> str | None:
    name = text(attributes, "traceloop.entity.name", "gen_ai.tool.name", "gen_ai.agent.name", "gen_ai.workflow.name")
    return None if name is None else name.removesuffix(".task").removesuffix(".workflow")


def _given(data: Any, gave: Any) -> Any:
    """What a step was called with, without what Traceloop writes around it; what a stream was, comes with its end."""
    if not isinstance(data, dict):
        return data
    if "inputs" in data or "input_str" in data:
        inputs = data.get("inputs", data.get("input_str"))
        beside = gave.get("kwargs") if isinstance(gave, dict) and inputs == NO_INPUT_YET else None
        return beside.get("inputs", inputs) if isinstance(beside, dict) else inputs
    return arguments_in(data)


def _gave(data: Any) -> Any:
    if isinstance(data, dict):
        return next((data[key] for key in ("outputs", "output") if key in data), data)
    return data


# The kinds


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


def _read_model(read: ReadSpan, payloads: Payloads, _: Any) -> None:
    attributes = read.span.attributes
    replies = _replies(read.span, payloads)
    names = [text(attributes, f"gen_ai.{side}.model") for side in ("request", "response")]
    asked, answered = (None if name == "unknown" else name for name in names)
    reasons = attributes.get("gen_ai.response.finish_reasons")
    usage = {name: whole(attributes, f"gen_ai.usage.{name}") for name in ("input_tokens", "output_tokens")}
    about = usage | {
        "model": answered,
        "id": text(attributes, "gen_ai.response.id"),
        "cached_tokens": whole(attributes, "gen_ai.usage.cache_read.input_tokens"),
        "finish_reason": reasons[0] if isinstance(reasons, list) and reasons else None,
    }
    read.become(
        ModelStep,
        inputs=_prompt(read.span, payloads),
        reply=replies[0] if replies else None,
        model=asked,
        provider=text(attributes, "gen_ai.provider.name", "gen_ai.system"),
        provider_metadata=[about],
    )


def _read_search(read: ReadSpan, payloads: Payloads, gave: Any) -> None:
    attributes = read.span.attributes
    query = text(attributes, "gen_ai.retrieval.query.text") or query_in(read.chain.inputs)
    top_k = whole(attributes, "gen_ai.retrieval.top_k") or whole(attributes, "gen_ai.request.top_k")
    listed = json_of(attributes.get("gen_ai.retrieval.documents"))
    if listed is None:
        listed = gave.get("documents") if isinstance(gave, dict) else gave
    found = payloads.documents_in(listed, loosely=True) if isinstance(listed, list) else None
    if not found and listed != []:
        found = None
    if read.kind == "reranker":
        read.become_reranker((), found, query=query, top_k=top_k)
    else:
        read.become_search(query, found, top_k=top_k, data_source_id=text(attributes, "gen_ai.data_source.id"))


def _read_tool(read: ReadSpan, payloads: Payloads, _: Any) -> None:
    attributes, given, gave = read.span.attributes, read.chain.inputs, read.chain.output
    if given is OPAQUE:
        given = payloads.read(attributes.get("gen_ai.tool.call.arguments"))
    if gave is OPAQUE:
        gave = payloads.read(attributes.get("gen_ai.tool.call.result"))
    call_id = text(attributes, "gen_ai.tool.call.id") or getattr(gave, "call_id", None)
    read.become(ToolStep, inputs=given, output=gave, call_id=call_id)


# Messages


def _prompt(span: TracedSpan, payloads: Payloads) -> list[PayloadMessage]:
    """The system's instructions and the messages that a model or an agent was given."""
    system = [part.get("content") for part in _parts(_content(span, "gen_ai.system_instructions"))]
    messages = [PayloadMessage("system", each) for each in system if isinstance(each, str)]
    given = list(_messages(_content(span, "gen_ai.input.messages"), payloads))
    given = given or [_numbered(one, payloads) for one in numbered(span.attributes, "gen_ai.prompt")]
    return messages + (given or list(_in_events(span, payloads)))


def _replies(span: TracedSpan, payloads: Payloads) -> list[PayloadMessage]:
    """The messages that it answered with."""
    said = list(_messages(_content(span, "gen_ai.output.messages"), payloads))
    said = said or [_numbered(one, payloads, "assistant") for one in numbered(span.attributes, "gen_ai.completion")]
    return said or list(_in_events(span, payloads, replies=True))


def _in_events(span: TracedSpan, payloads: Payloads, *, replies: bool = False) -> Iterator[PayloadMessage]:
    """The messages in events of their own, one each, as the conventions had them from 1.28 to 1.36."""
    for event in span.events:
        role = "assistant" if replies else _EVENTS.get(event.name)
        if role is None or (replies and event.name != _CHOICE):
            continue
        content = json_of(event.attributes.get("gen_ai.event.content"))
        body: Mapping[str, Any] = content if isinstance(content, dict) else event.attributes
        if replies:
            said = json_of(body.get("message")) or body.get("message")
            body = (
                said if isinstance(said, dict) else {"content": said if isinstance(said, str) else body.get("content")}
            )
        parts, calls = json_of(body.get("content")), json_of(body.get("tool_calls"))
        text = parts if isinstance(parts, list) else as_text(body.get("content")) or ""
        about = {"content": text, "tool_calls": calls, "tool_call_id": body.get("tool_call_id", body.get("id"))}
        yield payloads.message(about, role)


def _content(span: TracedSpan, name: str) -> Any:
    """An attribute of the span, or else of an event that carries it."""
    own = span.attributes.get(name)
    events = (event.attributes.get(name) for event in span.events)
    return json_of(own) if own is not None else next((json_of(each) for each in events if each is not None), None)


def _parts(value: Any) -> Iterator[Mapping[str, Any]]:
    for part in value if isinstance(value, list) else ():
        if isinstance(part, Mapping):
            yield part


def _messages(value: Any, payloads: Payloads) -> Iterator[PayloadMessage]:
    for one in _parts(value):
        yield payloads.message(one, str(one.get("role", "user")))


def _numbered(fields: Mapping[str, Any], payloads: Payloads, role: str = "user") -> PayloadMessage:
    """A message of attributes named `gen_ai.prompt.0.role` and the like."""
    content = fields.get("content")
    parts = json_of(content)
    about = {
        "content": parts if isinstance(parts, list) else as_text(content),
        "tool_calls": numbered(fields, "tool_calls"),
        "tool_call_id": fields.get("tool_call_id"),
    }
    return payloads.message(about, str(fields.get("role") or role))


_DETAILS: Mapping[Kind, Callable[[ReadSpan, Payloads, Any], None]] = {
    "model": _read_model,
    "retriever": _read_search,
    "reranker": _read_search,
    "tool": _read_tool,
}
