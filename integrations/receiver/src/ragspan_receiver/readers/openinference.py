"""OpenInference's spans: `openinference.span.kind`, `input.value`, `llm.input_messages.*`, `retrieval.documents.*`.

They hold what chains were called with and gave, as text or JSON, so that a program's own searches are seen, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ragspan.request import ModelStep, PayloadMessage, Step, ToolStep, texts_in
from ragspan.safe_copy import OPAQUE
from ragspan_receiver.readers.payloads import (
    Payloads,
    Scored,
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
from ragspan_receiver.readers.steps import Kind, ReadSpan
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
_NODE = re.compile(r"Node\(id_=([^)]+)\), score=([-\d.e]+)")
_STREAMS = (("response_txt", "source_nodes"), ("response", "achat_stream"))
_EVALUATOR = ("Evaluator.evaluate", "Evaluator.aevaluate")


def read(span: TracedSpan, payloads: Payloads) -> ReadSpan | None:
    """The step of a span; None for embeddings."""
    about = span.attributes
    kind = _KINDS.get(str(about.get(KIND)).upper())
    if kind is None:
        return None
    if kind == "agent" and "llm.invocation_parameters" in about:
        kind = "model"  # one with "agent" in its name
    elif kind == "chain" and any(key.startswith("reranker.") for key in about):
        kind = "reranker"
    framework = span.scope.rpartition(".")[2]
    tags = about.get("tag.tags")
    read = ReadSpan(
        span=span,
        chain=Step(
            name=text(about, "tool.name", "agent.name")
            or (span.name.partition(".")[0] if framework in _METHODS else span.name),
            parent=None,
            started_ns=span.start_ns,
            inputs=payloads.read(about.get("input.value")),
            output=payloads.read(about.get("output.value")),
        ),
        kind="ignored" if span.name.endswith(_EVALUATOR) else kind,
        framework=framework,
        tags=[tag for tag in tags if isinstance(tag, str)] if isinstance(tags, (list, tuple)) else (),
        metadata=as_fields(about.get("metadata")),
    )
    if kind == "model":
        _read_model(read, payloads)
    elif kind == "retriever":
        query = query_in(read.chain.inputs) or as_text(about.get("input.value"))
        read.become_search(query, _found(about, payloads, loosely=framework == "langchain"))
    elif kind == "reranker":
        read.become_reranker(
            _documents(about, "reranker.input_documents", payloads),
            _documents(about, "reranker.output_documents", payloads),
            query=text(about, "reranker.query"),
            model=text(about, "reranker.model_name"),
            top_k=whole(about, "reranker.top_k"),
        )
    elif kind == "tool":
        _read_tool(read)
    else:
        _read_chain(read, payloads)
    return read


def _read_chain(read: ReadSpan, payloads: Payloads) -> None:
    chain, left = read.chain, read.span.attributes.get("output.value")
    if str(read.span.attributes.get(KIND)).upper() == "PROMPT":
        read.made_prompt = payloads.prompt_in(left) if json_of(left) is not None else ()
    if isinstance(chain.output, dict):  # LlamaIndex's streams before they were read
        given = chain.output
        said = next((given[key] for key, beside in _STREAMS if {key, beside} <= given.keys()), given)
        chain.output = said or OPAQUE
    if read.span.name.endswith(_POSTPROCESSING):
        # LlamaIndex's postprocessors show the ids of the nodes that they return.
        scores = _NODE.findall(left) if isinstance(left, str) and left.startswith("[") else []
        found = [(payloads.by_id[own_id], number(score)) for own_id, score in scores if own_id in payloads.by_id]
        if found or left == "[]":
            read.become_reranker((), found)
    elif isinstance(chain.inputs, dict):
        read.written = chunks_in(chain.inputs)
        if "init_state" in chain.inputs:
            chain.inputs = OPAQUE  # a workflow's state before it began, without the question


def _read_model(read: ReadSpan, payloads: Payloads) -> None:
    about = read.span.attributes
    parameters = as_fields(about.get("llm.invocation_parameters"))
    beside = parameters.get("documents") or parameters.get("source_documents")
    given, prompts = about.get("input.value"), about.get("llm.prompts")
    messages = payloads.prompt_in(given) if json_of(given) is not None and read.framework == "langchain" else []
    messages = messages or [_message(one, payloads) for one in numbered(about, "llm.input_messages")]
    if not messages:
        texts = [one for one in prompts or () if isinstance(one, str)] or _haystack_prompt(read)
        messages = [PayloadMessage("human", one) for one in texts]
    replies = numbered(about, "llm.output_messages")
    read.become(
        ModelStep,
        inputs=messages,
        beside=None if beside is None else payloads.snapshot(beside),
        reply=_message(replies[0], payloads) if replies else payloads.reply_in(about.get("output.value")),
        model=text(about, "llm.model_name") or text(read.metadata, "ls_model_name"),
        provider=text(about, "llm.provider", "llm.system"),
        provider_metadata=[
            {
                "prompt_tokens": whole(about, "llm.token_count.prompt"),
                "completion_tokens": whole(about, "llm.token_count.completion"),
                "cached_tokens": whole(about, "llm.token_count.prompt_details.cache_read"),
                "finish_reason": about.get("llm.finish_reason"),
            }
        ],
    )


def _haystack_prompt(read: ReadSpan) -> Iterator[str]:
    """What a generator of Haystack's was asked; some of its spans show this in its own words, and no messages."""
    inputs = as_fields(read.span.attributes.get("input.value")) if read.framework == "haystack" else {}
    for call in (inputs, *inputs.values()):
        for name in ("messages", "prompt") if isinstance(call, dict) else ():
            yield from texts_in(call.get(name))


def _message(fields: Mapping[str, Any], payloads: Payloads) -> PayloadMessage:
    """A message, made of its attributes."""
    content = fields.get("message.content")
    if not isinstance(content, str):
        parts = [part.get("message_content.text") for part in numbered(fields, "message.contents")]
        # AutoGen's instrumentation has results of tools so: function.0, function.1.
        parts += [as_fields(value).get("content") for key, value in fields.items() if key.startswith("function.")]
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


def _read_tool(read: ReadSpan) -> None:
    """Some tools are called with `args` and `kwargs`; LlamaIndex's give an object with blocks of text."""
    given, gave = read.chain.inputs, read.chain.output
    if isinstance(given, dict):
        given = arguments_in(given)
    if isinstance(gave, dict) and isinstance(gave.get("blocks"), list):
        texts = (block.get("text") for block in gave["blocks"] if isinstance(block, dict))
        gave = "\n".join(said for said in texts if isinstance(said, str))
    read.become(ToolStep, inputs=given, output=gave, call_id=getattr(gave, "call_id", None))


def _found(about: Mapping[str, Any], payloads: Payloads, *, loosely: bool) -> list[Scored] | None:
    """What a search found, where a document may `loosely` be a text; None if the span has ids of documents, or nothing."""
    output = json_of(about.get("output.value"))
    inside = output.get("documents") if isinstance(output, dict) else output
    found = payloads.documents_in(inside, loosely=loosely) if isinstance(inside, list) else []
    found = found or _documents(about, "retrieval.documents", payloads)
    return found or ([] if inside == [] else None)


def _documents(about: Mapping[str, Any], prefix: str, payloads: Payloads) -> list[Scored]:
    found: list[Scored] = []
    for fields in numbered(about, prefix):
        content = fields.get("document.content")
        if isinstance(content, str):
            own = payloads.document(content, own_id=fields.get("document.id"), metadata=fields.get("document.metadata"))
            found.append((own, number(fields.get("document.score"))))
    return found
