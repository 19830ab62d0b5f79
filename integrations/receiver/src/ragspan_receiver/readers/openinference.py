"""OpenInference's spans: `openinference.span.kind`, `input.value`, `llm.input_messages.*`, `retrieval.documents.*`.

They hold what chains were called with and gave, as text or JSON, so that a program's own searches are seen, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ragspan.capturing import OPAQUE, Snapshot
from ragspan.request import ModelStep, PayloadMessage, Step, ToolStep, texts_in
from ragspan_receiver.readers.payloads import (
    Payloads,
    arguments_in,
    as_fields,
    as_text,
    chunks_in,
    json_of,
    number,
    numbered,
    query_in,
    text,
    whole,
)
from ragspan_receiver.readers.steps import Kind, ReadSpan, Scored
from ragspan_receiver.spans import TracedSpan

KIND = "openinference.span.kind"

_KINDS: dict[str, Kind] = {
    "AGENT": "agent",
    "CHAIN": "chain",
    "PROMPT": "chain",
    "LLM": "model",
    "RETRIEVER": "retriever",
    "RERANKER": "reranker",
    "TOOL": "tool",
    "EVALUATOR": "ignored",
    "GUARDRAIL": "ignored",
}
_METHODS = {"llama_index", "dspy"}
"""The spans of these instrumentations are named by a class or tool and its method."""
_POSTPROCESSING = ("._postprocess_nodes", "._apostprocess_nodes")
_node = re.compile(r"Node\(id_=([^)]+)\), score=([-\d.e]+)")
_STREAMS = (("response_txt", "source_nodes"), ("response", "achat_stream"))
_EVALUATOR = ("Evaluator.evaluate", "Evaluator.aevaluate")


def read(span: TracedSpan, payloads: Payloads) -> ReadSpan | None:
    """The step of a span; None for embeddings."""
    attributes = span.attributes
    kind = _kind_of(span)
    if kind is None:
        return None
    framework = span.scope.rpartition(".")[2]
    name = span.name.partition(".")[0] if framework in _METHODS else span.name
    read = ReadSpan(
        span=span,
        chain=Step(
            name=text(attributes, "tool.name", "agent.name") or name,
            parent=None,
            started_ns=span.start_ns,
            inputs=payloads.read(attributes.get("input.value")),
            output=payloads.read(attributes.get("output.value")),
        ),
        kind=kind,
        framework=framework,
        tags=[tag for tag in _listed(attributes.get("tag.tags")) if isinstance(tag, str)],
        metadata=as_fields(attributes.get("metadata")),
    )
    _DETAILS.get(kind, _read_chain)(read, payloads)
    return read


def _kind_of(span: TracedSpan) -> Kind | None:
    attributes = span.attributes
    kind = _KINDS.get(str(attributes.get(KIND)).upper())
    if kind == "agent" and "llm.invocation_parameters" in attributes:
        return "model"  # one with "agent" in its name
    if kind == "chain" and any(key.startswith("reranker.") for key in attributes):
        return "reranker"
    return "ignored" if kind and span.name.endswith(_EVALUATOR) else kind


def _read_chain(read: ReadSpan, payloads: Payloads) -> None:
    chain = read.chain
    if str(read.span.attributes.get(KIND)).upper() == "PROMPT":
        read.made_prompt = _messages_of(chain.output)
    if isinstance(chain.output, dict):  # LlamaIndex's streams before they were read
        said = next(
            (chain.output[key] for key, beside in _STREAMS if {key, beside} <= chain.output.keys()), chain.output
        )
        chain.output = said or OPAQUE
    if read.span.name.endswith(_POSTPROCESSING):
        _read_postprocessing(read, payloads)
    elif isinstance(chain.inputs, dict):
        read.written = chunks_in(chain.inputs)
        if "init_state" in chain.inputs:
            chain.inputs = OPAQUE  # a workflow's state before it began, without the question


def _read_postprocessing(read: ReadSpan, payloads: Payloads) -> None:
    """LlamaIndex's postprocessors show the ids of the nodes that they return."""
    left = read.span.attributes.get("output.value")
    if isinstance(left, str) and left.startswith("["):
        scores = [(payloads.by_id.get(own_id), number(score)) for own_id, score in _node.findall(left)]
        found = [(document, score) for document, score in scores if document is not None]
        if found or left == "[]":
            read.become_reranker((), found)


def _messages_of(payload: Snapshot) -> list[PayloadMessage]:
    """The messages in a payload of LangChain's."""
    asked = payload.get("messages") if isinstance(payload, dict) else None
    while isinstance(asked, list) and asked and isinstance(asked[0], list):
        asked = asked[0]
    return asked if isinstance(asked, list) and all(isinstance(one, PayloadMessage) for one in asked) else []


def _read_model(read: ReadSpan, payloads: Payloads) -> None:
    attributes = read.span.attributes
    parameters = as_fields(attributes.get("llm.invocation_parameters"))
    beside = parameters.get("documents") or parameters.get("source_documents")
    prompts = (each for each in _listed(attributes.get("llm.prompts")) if isinstance(each, str))
    replies = numbered(attributes, "llm.output_messages")
    about = {
        "prompt_tokens": whole(attributes, "llm.token_count.prompt"),
        "completion_tokens": whole(attributes, "llm.token_count.completion"),
        "cached_tokens": whole(attributes, "llm.token_count.prompt_details.cache_read"),
        "finish_reason": attributes.get("llm.finish_reason"),
    }
    read.become(
        ModelStep,
        inputs=_messages_of(read.chain.inputs)
        or [_message(one, payloads) for one in numbered(attributes, "llm.input_messages")]
        or [PayloadMessage("human", prompt) for prompt in [*prompts] or _haystack_prompt(read)],
        beside=None if beside is None else payloads.snapshot(beside),
        reply=_message(replies[0], payloads) if replies else _plain_reply(attributes.get("output.value")),
        model=text(attributes, "llm.model_name") or text(read.metadata, "ls_model_name"),
        provider=text(attributes, "llm.provider", "llm.system"),
        provider_metadata=[about],
    )


def _haystack_prompt(read: ReadSpan) -> Iterator[str]:
    """What a generator of Haystack's was asked; some of its spans show this in its own words, and no messages."""
    inputs = as_fields(read.span.attributes.get("input.value")) if read.framework == "haystack" else {}
    for call in (inputs, *inputs.values()):
        for name in ("messages", "prompt") if isinstance(call, dict) else ():
            yield from texts_in(call.get(name))


def _plain_reply(output: Any) -> PayloadMessage | None:
    """What a model without messages said: a text, or LangChain's generations."""
    generations = as_fields(output).get("generations")
    while isinstance(generations, list) and generations:
        generations = generations[0]
    said = generations.get("text") if isinstance(generations, dict) else output
    return PayloadMessage("ai", said) if isinstance(said, str) else None


def _message(fields: Mapping[str, Any], payloads: Payloads) -> PayloadMessage:
    """A message, made of its attributes."""
    content = fields.get("message.content")
    if not isinstance(content, str):
        parts = (part.get("message_content.text") for part in numbered(fields, "message.contents"))
        content = "\n".join(part for part in parts if isinstance(part, str))
    calls = [
        {
            "id": call.get("tool_call.id"),
            "name": call.get("tool_call.function.name"),
            "args": call.get("tool_call.function.arguments"),
        }
        for call in numbered(fields, "message.tool_calls")
    ]
    about = {"content": content, "tool_calls": calls, "tool_call_id": fields.get("message.tool_call_id")}
    return payloads.message(about, str(fields.get("message.role")))


def _read_search(read: ReadSpan, payloads: Payloads) -> None:
    attributes = read.span.attributes
    query = query_in(read.chain.inputs) or as_text(attributes.get("input.value"))
    read.become_search(query, _found(attributes, payloads, loosely=read.framework == "langchain"))


def _read_reranker(read: ReadSpan, payloads: Payloads) -> None:
    attributes = read.span.attributes
    read.become_reranker(
        _documents(attributes, "reranker.input_documents", payloads),
        _documents(attributes, "reranker.output_documents", payloads),
        query=text(attributes, "reranker.query"),
        model=text(attributes, "reranker.model_name"),
        top_k=whole(attributes, "reranker.top_k"),
    )


def _read_tool(read: ReadSpan, _: Payloads) -> None:
    """Some tools are called with `args` and `kwargs`; LlamaIndex's give an object with blocks of text."""
    given, gave = read.chain.inputs, read.chain.output
    if isinstance(given, dict):
        given = arguments_in(given)
    if isinstance(gave, dict) and isinstance(gave.get("blocks"), list):
        texts = (block.get("text") for block in gave["blocks"] if isinstance(block, dict))
        gave = "\n".join(said for said in texts if isinstance(said, str))
    read.become(ToolStep, inputs=given, output=gave, call_id=getattr(gave, "call_id", None))


def _found(attributes: Mapping[str, Any], payloads: Payloads, *, loosely: bool) -> list[Scored] | None:
    """What a search found; None if the span has ids of documents, or nothing, instead of their texts.

    Args:
        attributes: the span's.
        payloads: the trace's.
        loosely: a document may be a text.
    """
    output = json_of(attributes.get("output.value"))
    inside = output.get("documents") if isinstance(output, dict) else output
    found = payloads.documents_in(inside, loosely=loosely) if isinstance(inside, list) else []
    found = found or _documents(attributes, "retrieval.documents", payloads)
    return found or ([] if inside == [] else None)


def _documents(attributes: Mapping[str, Any], prefix: str, payloads: Payloads) -> list[Scored]:
    found: list[Scored] = []
    for fields in numbered(attributes, prefix):
        content = fields.get("document.content")
        if isinstance(content, str):
            own = payloads.document(content, own_id=fields.get("document.id"), metadata=fields.get("document.metadata"))
            found.append((own, number(fields.get("document.score"))))
    return found


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else []


_DETAILS: Mapping[Kind, Callable[[ReadSpan, Payloads], None]] = {
    "model": _read_model,
    "retriever": _read_search,
    "reranker": _read_reranker,
    "tool": _read_tool,
}
