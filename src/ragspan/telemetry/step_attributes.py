"""The spans of steps: what each kind is called, and its attributes, the most important first.

Documents have ids and scores; texts are written only if content is wanted.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from opentelemetry.trace import SpanKind

from ragspan.messages import Message
from ragspan.records import Generation, Reranking, Retrieval, RetrievedContext, Step, ToolCall
from ragspan.telemetry import semconv
from ragspan.telemetry.content import ContentPolicy
from ragspan.telemetry.values import MAX_TEXT_CHARS, Attributes, bounded, clean_name, json_list

_MAX_DOCUMENTS = 50  # with two OpenInference attributes each they stay below OpenTelemetry's default limit of 128
_MAX_SHOWN_DOCUMENTS = 30  # three attributes each
_MAX_PASSAGE_CHARS = 2000
_MAX_MESSAGES = 20  # the last ones: OpenInference has two attributes for each, and more for calls of tools
_LONGEST_TEXT, _SHORTEST_TEXT = 4096, 128  # characters of a message's text: as many as leave all room in one attribute
KINDS: Mapping[type[Step], tuple[str, str, SpanKind]] = {
    ToolCall: ("execute_tool", "TOOL", SpanKind.INTERNAL),
    Retrieval: ("retrieval", "RETRIEVER", SpanKind.CLIENT),
    Reranking: ("rerank", "RERANKER", SpanKind.INTERNAL),  # the conventions have no such operation
    Generation: ("chat", "LLM", SpanKind.CLIENT),
}
"""Operation and kind of a step's span, in OpenTelemetry's conventions, in OpenInference's, and for the SDK."""


def step_name(step: Step) -> str:
    """The name of the step's span."""
    source = step.data_source_id if isinstance(step, Retrieval) else None
    name = step.model or "" if isinstance(step, Generation) else source or step.name
    return clean_name(f"{KINDS[type(step)][0]} {name}".rstrip())


def step_attributes(step: Step, content: ContentPolicy) -> tuple[Attributes, Attributes]:
    """The attributes of the step's span: those at its start, which samplers see, and the others."""
    operation, kind, _ = KINDS[type(step)]
    start: dict[str, object] = {semconv.OPENINFERENCE_SPAN_KIND: kind, semconv.GEN_AI_OPERATION_NAME: operation}
    rest: dict[str, object]
    match step:
        case ToolCall():
            start |= {"gen_ai.tool.name": step.name, "gen_ai.tool.call.id": step.call_id}
            rest = {
                "tool.name": step.name,
                **text_attributes(step.arguments, "inputs", content, "gen_ai.tool.call.arguments"),
                **text_attributes(step.result, "outputs", content, "gen_ai.tool.call.result"),
            }
        case Retrieval():
            start |= {
                "gen_ai.data_source.id": step.data_source_id,
                "gen_ai.retrieval.top_k": step.top_k,
                "gen_ai.tool.name": step.tool_name,
                "gen_ai.tool.call.id": step.tool_call_id,
            }
            rest = {
                "gen_ai.retrieval.documents": json_list([*map(_id_and_score, step.contexts[:_MAX_DOCUMENTS])]),
                **text_attributes(step.query, "inputs", content, "gen_ai.retrieval.query.text"),
                **document_attributes(semconv.RETRIEVAL_DOCUMENTS, step.contexts, content),
            }
        case Reranking():
            rest = {
                "reranker.top_k": step.top_k,
                "reranker.model_name": step.model,
                **text_attributes(step.query, "inputs", content, "reranker.query"),
                **document_attributes("reranker.output_documents", step.contexts, content),
                **document_attributes("reranker.input_documents", step.given, content),
            }
        case Generation():
            start |= {
                "gen_ai.provider.name": step.provider,
                "gen_ai.request.model": step.model,
                "gen_ai.request.stream": step.streamed or None,
            }
            rest = _of_generation(step, content)
    return start, rest


_COPIES = {
    "inputs": (semconv.INPUT_VALUE, "input.mime_type"),
    "outputs": (semconv.OUTPUT_VALUE, "output.mime_type"),
}


def text_attributes(
    text: str | None, hidden_as: Literal["inputs", "outputs"], content: ContentPolicy, name: str | None = None
) -> Attributes:
    """A text under OpenInference's names for it and its type, and under its own if it has one; none where it is hidden."""
    if text is None or not content.allows(hidden_as=hidden_as):
        return {}
    value, mime_type = _COPIES[hidden_as]
    mime = "application/json" if text.startswith(("{", "[")) else "text/plain"
    return {name or value: text, value: text, mime_type: mime}


def _of_generation(step: Generation, content: ContentPolicy) -> dict[str, object]:
    first_ns, counts = step.first_token_ns, (step.input_tokens, step.output_tokens)
    found: dict[str, object] = {
        semconv.GEN_AI_RESPONSE_ID: step.response_id,
        "gen_ai.response.model": step.response_model,
        "gen_ai.usage.input_tokens": step.input_tokens,
        "gen_ai.usage.output_tokens": step.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": step.cached_tokens,
        "gen_ai.response.finish_reasons": step.finish_reason and (step.finish_reason,),
        "gen_ai.response.time_to_first_chunk": first_ns and max(first_ns - step.started_ns, 0) / 1e9,
        "llm.model_name": step.model,
        "llm.provider": step.provider,
        "llm.token_count.prompt": step.input_tokens,
        "llm.token_count.completion": step.output_tokens,
        "llm.token_count.total": None if None in counts else sum(count or 0 for count in counts),
        "llm.token_count.prompt_details.cache_read": step.cached_tokens,
        "llm.finish_reason": step.finish_reason,
    }
    # The reply first, then the prompt from its last message to its first.
    if step.reply is not None and content.allows(hidden_as="outputs"):
        reply = fitted([step.reply])
        about = {"finish_reason": step.finish_reason} if step.finish_reason is not None else {}
        found["gen_ai.output.messages"] = _json([_as_json(one) | about for one in reply])
        found |= _openinference("llm.output_messages", reply)
    if step.prompt and content.allows(hidden_as="inputs"):
        prompt = fitted(step.prompt)
        instructions = [{"type": "text", "content": one.text} for one in prompt if one.role == "system"]
        spoken = [_as_json(one) for one in prompt if one.role != "system"]
        found["gen_ai.input.messages"] = _json(spoken) if spoken else None
        found["gen_ai.system_instructions"] = _json(instructions) if instructions else None
        found |= _openinference("llm.input_messages", prompt)
    return found


def document_attributes(
    among: str, contexts: tuple[RetrievedContext, ...], content: ContentPolicy, *, limit: int = _MAX_PASSAGE_CHARS
) -> Attributes:
    """OpenInference's list of documents. Each document has at least one attribute, because readers close the gaps of a list."""
    found: dict[str, object] = {}
    is_shown = content.allows(hidden_as="documents")
    for index, context in enumerate(contexts[: _MAX_SHOWN_DOCUMENTS if is_shown else _MAX_DOCUMENTS]):
        told: dict[str, object] = {"id": context.id, "score": context.score}
        if is_shown:
            told["content"] = bounded(context.text, limit)
        elif not context.id and context.score is None:
            told["metadata"] = f'{{"rank": {index}}}'
        found |= {f"{among}.{index}.document.{name}": one for name, one in told.items() if one is not None}
    return found


def document_id(context: RetrievedContext) -> dict[str, str | float]:
    """The document's id, if it has one, as an entry of JSON."""
    return {} if context.id is None else {"id": clean_name(context.id)}


def _id_and_score(context: RetrievedContext) -> dict[str, str | float]:
    """A document without id and score is an empty object, so that the place in the list is the rank."""
    found = document_id(context)
    if context.score is not None and math.isfinite(context.score):
        found["score"] = float(context.score)
    return found


def fitted(messages: Sequence[Message]) -> list[Message]:
    """The messages that one attribute holds as JSON: the first instructions and the last ones, with long texts cut."""
    first = [one for one in messages[:-_MAX_MESSAGES] if one.role == "system"][:1]
    kept, limit = [*first, *messages[-_MAX_MESSAGES:]], _LONGEST_TEXT
    while True:
        cut = [_cut(message, limit) for message in kept]
        if not kept or len(_json([_as_json(one) for one in cut])) <= MAX_TEXT_CHARS:
            return cut
        if limit > _SHORTEST_TEXT:
            limit //= 2
        else:
            del kept[min(len(first), len(kept) - 1)]


def _cut(message: Message, limit: int) -> Message:
    asked = message.tool_requests
    requests = tuple(replace(one, arguments=one.arguments and bounded(one.arguments, limit)) for one in asked)
    return replace(message, text=bounded(message.text, limit), tool_requests=requests)


def _as_json(message: Message) -> dict[str, Any]:
    """The message in the form of the GenAI conventions."""
    if message.role == "tool":
        answer = {"type": "tool_call_response", "id": message.tool_call_id, "response": message.text}
        return {"role": message.role, "parts": [answer]}
    parts: list[dict[str, Any]] = [{"type": "text", "content": message.text}] if message.text else []
    for request in message.tool_requests:
        try:
            arguments = json.loads(request.arguments) if request.arguments else None
        except ValueError:  # the text was cut, or the model wrote no JSON
            arguments = request.arguments
        parts.append({"type": "tool_call", "id": request.id, "name": request.name, "arguments": arguments})
    return {"role": message.role, "parts": parts}


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _openinference(among: str, messages: Sequence[Message]) -> Attributes:
    found: dict[str, object] = {}
    for index, message in reversed([*enumerate(messages)]):
        told = {"role": message.role, "content": message.text or None, "tool_call_id": message.tool_call_id}
        found |= {f"{among}.{index}.message.{name}": value for name, value in told.items()}
        for place, request in enumerate(message.tool_requests):
            call = {"id": request.id, "function.name": request.name, "function.arguments": request.arguments}
            asked = f"{among}.{index}.message.tool_calls.{place}.tool_call"
            found |= {f"{asked}.{name}": value for name, value in call.items()}
    return found
