"""Spans of tools' own exporters, which write what a step was given and gave as JSON: Langfuse's SDK from 3 on, and LangSmith's export."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ragspan.request import ModelStep, Step, ToolStep
from ragspan_receiver.readers.payloads import Payloads, as_fields, chunks_in, json_of, query_in, text, whole
from ragspan_receiver.readers.steps import Kind, ReadSpan
from ragspan_receiver.spans import TracedSpan

LANGFUSE, LANGSMITH = "langfuse.observation.type", "langsmith.span.kind"
_KINDS: Mapping[str, Kind | None] = {
    "generation": "model",
    "llm": "model",
    "agent": "agent",
    "retriever": "retriever",
    "tool": "tool",
    "evaluator": "ignored",
    "guardrail": "ignored",
    "embedding": None,
    "event": None,
}
_PARENT_OF_METADATA = ("langfuse.trace.metadata.", "langfuse.observation.metadata.", "langsmith.metadata.")


def read_langfuse(span: TracedSpan, payloads: Payloads) -> ReadSpan | None:
    """The step of an observation; None for embeddings and events."""
    about = span.attributes
    given, gave = (about.get(f"langfuse.observation.{side}") for side in ("input", "output"))
    usage = as_fields(about.get("langfuse.observation.usage_details"))
    model = text(about, "langfuse.observation.model.name")
    return _read(span, payloads, str(about[LANGFUSE]), given, gave, {**usage, "model": model})


def read_langsmith(span: TracedSpan, payloads: Payloads) -> ReadSpan | None:
    """The step of a run; what a chain of one field was given and gave stands in a field `input` or `output`."""
    about = span.attributes
    given, gave = json_of(about.get("gen_ai.prompt")), json_of(about.get("gen_ai.completion"))
    given = given["input"] if isinstance(given, dict) and given.keys() == {"input"} else given
    gave = gave["output"] if isinstance(gave, dict) and gave.keys() == {"output"} else gave
    usage = {name: about.get(f"gen_ai.usage.{name}") for name in ("input_tokens", "output_tokens")}
    model = text(about, "gen_ai.request.model")
    return _read(span, payloads, str(about[LANGSMITH]), given, gave, {**usage, "model": model})


def _read(
    span: TracedSpan, payloads: Payloads, named: str, given: Any, gave: Any, used: Mapping[str, Any]
) -> ReadSpan | None:
    kind = _KINDS.get(named, "chain")
    if kind is None:
        return None
    about = span.attributes
    is_langchain = LANGSMITH in about or any(key.startswith("langfuse.observation.metadata.") for key in about)
    read = ReadSpan(
        span=span,
        chain=Step(
            name=text(about, "langsmith.trace.name") or span.name,
            parent=None,
            started_ns=span.start_ns,
            inputs=payloads.read(given),
            output=payloads.read(gave),
        ),
        kind=kind,
        framework="langchain" if is_langchain else named and "langfuse",
        metadata={
            key.removeprefix(start): value
            for start in _PARENT_OF_METADATA
            for key, value in about.items()
            if key.startswith(start)
        },
    )
    chain = read.chain
    if kind == "model":
        read.become(
            ModelStep,
            inputs=payloads.prompt_in(given),
            reply=payloads.reply_in(gave),
            model=used.get("model"),
            provider=text(about, "gen_ai.system"),
            provider_metadata=[
                {
                    "input_tokens": whole(used, "input", "input_tokens", "prompt_tokens"),
                    "output_tokens": whole(used, "output", "output_tokens", "completion_tokens"),
                }
            ],
        )
    elif kind == "retriever":
        listed = json_of(gave)
        listed = listed.get("documents") if isinstance(listed, dict) else listed
        found = payloads.documents_in(listed, loosely=True) if isinstance(listed, list) else []
        read.become_search(query_in(chain.inputs), found if found or listed == [] else None)
    elif kind == "tool":
        read.become(ToolStep, inputs=chain.inputs, output=chain.output, call_id=getattr(chain.output, "call_id", None))
    elif named == "prompt" or span.name.endswith("PromptTemplate"):
        read.made_prompt = payloads.prompt_in(gave)
    elif not is_langchain:
        read.written = chunks_in(chain.inputs)
    return read
