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
            start |= {semconv.GEN_AI_TOOL_NAME: step.name, semconv.GEN_AI_TOOL_CALL_ID: step.call_id}
            rest = {
                semconv.TOOL_NAME: step.name,
                **text_attributes(step.arguments, "inputs", content, semconv.GEN_AI_TOOL_CALL_ARGUMENTS),
                **text_attributes(step.result, "outputs", content, semconv.GEN_AI_TOOL_CALL_RESULT),
            }
        case Retrieval():
            start |= {
                semconv.GEN_AI_DATA_SOURCE_ID: step.data_source_id,
                semconv.GEN_AI_RETRIEVAL_TOP_K: step.top_k,
                semconv.GEN_AI_TOOL_NAME: step.tool_name,
                semconv.GEN_AI_TOOL_CALL_ID: step.tool_call_id,
            }
            rest = {
                semconv.GEN_AI_RETRIEVAL_DOCUMENTS: json_list([*map(_id_and_score, step.contexts[:_MAX_DOCUMENTS])]),
                **text_attributes(step.query, "inputs", content, semconv.GEN_AI_RETRIEVAL_QUERY_TEXT),
                **document_attributes(semconv.RETRIEVAL_DOCUMENTS, step.contexts, content),
            }
        case Reranking():
            rest = {
                semconv.RERANKER_TOP_K: step.top_k,
                semconv.RERANKER_MODEL_NAME: step.model,
                **text_attributes(step.query, "inputs", content, semconv.RERANKER_QUERY),
                **document_attributes(semconv.RERANKER_OUTPUT_DOCUMENTS, step.contexts, content),
                **document_attributes(semconv.RERANKER_INPUT_DOCUMENTS, step.given, content),
            }
        case Generation():
            start |= {
                semconv.GEN_AI_PROVIDER_NAME: step.provider,
                semconv.GEN_AI_REQUEST_MODEL: step.model,
                semconv.GEN_AI_REQUEST_STREAM: step.streamed or None,
            }
            rest = _of_generation(step, content)
    return start, rest


_COPIES = {
    "inputs": (semconv.INPUT_VALUE, semconv.INPUT_MIME_TYPE),
    "outputs": (semconv.OUTPUT_VALUE, semconv.OUTPUT_MIME_TYPE),
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
        semconv.GEN_AI_RESPONSE_MODEL: step.response_model,
        semconv.GEN_AI_USAGE_INPUT_TOKENS: step.input_tokens,
        semconv.GEN_AI_USAGE_OUTPUT_TOKENS: step.output_tokens,
        semconv.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS: step.cached_tokens,
        semconv.GEN_AI_RESPONSE_FINISH_REASONS: step.finish_reason and (step.finish_reason,),
        semconv.GEN_AI_RESPONSE_TIME_TO_FIRST_CHUNK: first_ns and max(first_ns - step.started_ns, 0) / 1e9,
        semconv.LLM_MODEL_NAME: step.model,
        semconv.LLM_PROVIDER: step.provider,
        semconv.LLM_TOKEN_COUNT_PROMPT: step.input_tokens,
        semconv.LLM_TOKEN_COUNT_COMPLETION: step.output_tokens,
        semconv.LLM_TOKEN_COUNT_TOTAL: None if None in counts else sum(count or 0 for count in counts),
        semconv.LLM_TOKEN_COUNT_PROMPT_DETAILS_CACHE_READ: step.cached_tokens,
        semconv.LLM_FINISH_REASON: step.finish_reason,
    }
    # The reply first, then the prompt from its last message to its first.
    if step.reply is not None and content.allows(hidden_as="outputs"):
        reply = fitted([step.reply])
        about = {"finish_reason": step.finish_reason} if step.finish_reason is not None else {}
        found[semconv.GEN_AI_OUTPUT_MESSAGES] = _json([_as_json(one) | about for one in reply])
        found |= _openinference(semconv.LLM_OUTPUT_MESSAGES, reply)
    if step.prompt and content.allows(hidden_as="inputs"):
        prompt = fitted(step.prompt)
        instructions = [{"type": "text", "content": one.text} for one in prompt if one.role == "system"]
        spoken = [_as_json(one) for one in prompt if one.role != "system"]
        found[semconv.GEN_AI_INPUT_MESSAGES] = _json(spoken) if spoken else None
        found[semconv.GEN_AI_SYSTEM_INSTRUCTIONS] = _json(instructions) if instructions else None
        found |= _openinference(semconv.LLM_INPUT_MESSAGES, prompt)
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
        found |= {semconv.DOCUMENT.format(among, index, name): one for name, one in told.items() if one is not None}
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
        found |= {semconv.MESSAGE.format(among, index, name): value for name, value in told.items()}
        for place, request in enumerate(message.tool_requests):
            call = {"id": request.id, "function.name": request.name, "function.arguments": request.arguments}
            found |= {
                semconv.MESSAGE_TOOL_CALL.format(among, index, place, name): value for name, value in call.items()
            }
    return found
