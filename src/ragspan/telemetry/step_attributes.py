"""The spans of steps: what each kind is called, and its attributes in groups, the most important first.

Documents have ids and scores; texts are written only if content is wanted.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from opentelemetry.trace import SpanKind

from ragspan.messages import Message
from ragspan.records import Generation, Reranking, Retrieval, RetrievedContext, Step, ToolCall
from ragspan.telemetry import semconv
from ragspan.telemetry.content import EmitterOptions
from ragspan.telemetry.values import MAX_TEXT_CHARS, Attributes, bounded, clean_name, json_list

MAX_DOCUMENTS = 50
"""With two OpenInference attributes each they stay below OpenTelemetry's default limit of 128."""
MAX_DOCUMENTS_WITH_CONTENT = 30
"""Three attributes each."""
MAX_PASSAGE_CHARS = 2000
MAX_MESSAGES = 20
"""The last ones of a conversation: OpenInference has two attributes for each, and more for calls of tools."""
_TEXT_LIMITS = (4096, 2048, 1024, 512, 256, 128)
"""Characters of a message's text: as many as leave all messages room in one attribute."""
_MAX_REQUESTS = 10


class Kind(NamedTuple):
    """The kind of a span, in OpenTelemetry's conventions and in OpenInference's."""

    operation: str
    kind: str
    span_kind: SpanKind = SpanKind.INTERNAL


KINDS: Mapping[type[Step], Kind] = {
    ToolCall: Kind(semconv.OPERATION_EXECUTE_TOOL, semconv.KIND_TOOL),
    Retrieval: Kind(semconv.OPERATION_RETRIEVAL, semconv.KIND_RETRIEVER, SpanKind.CLIENT),
    Reranking: Kind(semconv.OPERATION_RERANK, semconv.KIND_RERANKER),
    Generation: Kind(semconv.OPERATION_CHAT, semconv.KIND_LLM, SpanKind.CLIENT),
}


def step_name(step: Step) -> str:
    """The name of the step's span."""
    match step:
        case Retrieval():
            name = step.data_source_id or step.name
        case Generation():
            name = step.model or ""
        case _:
            name = step.name
    return clean_name(f"{KINDS[type(step)].operation} {name}".rstrip())


def essentials(step: Step) -> Attributes:
    """The attributes at the start of the span, for a sampler."""
    own: Attributes = {}
    match step:
        case ToolCall():
            own = {semconv.GEN_AI_TOOL_NAME: step.name, semconv.GEN_AI_TOOL_CALL_ID: step.call_id}
        case Retrieval():
            own = {
                semconv.GEN_AI_DATA_SOURCE_ID: step.data_source_id,
                semconv.GEN_AI_RETRIEVAL_TOP_K: step.top_k,
                semconv.GEN_AI_TOOL_NAME: step.tool_name,
                semconv.GEN_AI_TOOL_CALL_ID: step.tool_call_id,
            }
        case Generation():
            own = {
                semconv.GEN_AI_PROVIDER_NAME: step.provider,
                semconv.GEN_AI_REQUEST_MODEL: step.model,
                semconv.GEN_AI_REQUEST_STREAM: step.streamed or None,
            }
    kind = KINDS[type(step)]
    return {semconv.OPENINFERENCE_SPAN_KIND: kind.kind, semconv.GEN_AI_OPERATION_NAME: kind.operation, **own}


def step_groups(step: Step, options: EmitterOptions) -> Iterator[Attributes]:
    """The other attributes."""

    def texts(name: str, text: str | None, hidden_as: Any) -> Attributes:
        """A text under its own name and under OpenInference's names for it and its type."""
        if text is None or not options.content.allows("spans", hidden_as=hidden_as):
            return {}
        value, mime = _COPIES[hidden_as]
        return {name: text, value: text, mime: semconv.MIME_JSON if text.startswith(("{", "[")) else semconv.MIME_TEXT}

    match step:
        case ToolCall():
            yield {semconv.TOOL_NAME: step.name if options.openinference else None}
            yield texts(semconv.GEN_AI_TOOL_CALL_ARGUMENTS, step.arguments, "inputs")
            yield texts(semconv.GEN_AI_TOOL_CALL_RESULT, step.result, "outputs")
        case Retrieval():
            yield {semconv.GEN_AI_RETRIEVAL_DOCUMENTS: json_list([*map(_id_and_score, step.contexts[:MAX_DOCUMENTS])])}
            yield texts(semconv.GEN_AI_RETRIEVAL_QUERY_TEXT, step.query, "inputs")
            yield from _documents(semconv.RETRIEVAL_DOCUMENTS, step.contexts, options)
        case Reranking():
            yield {semconv.RERANKER_TOP_K: step.top_k, semconv.RERANKER_MODEL_NAME: step.model}
            yield texts(semconv.RERANKER_QUERY, step.query, "inputs")
            yield from _documents(semconv.RERANKER_OUTPUT_DOCUMENTS, step.contexts, options)
            yield from _documents(semconv.RERANKER_INPUT_DOCUMENTS, step.given, options)
        case Generation():
            yield from _generation_groups(step, options)


_COPIES = {
    "inputs": (semconv.INPUT_VALUE, semconv.INPUT_MIME_TYPE),
    "outputs": (semconv.OUTPUT_VALUE, semconv.OUTPUT_MIME_TYPE),
}


def _generation_groups(step: Generation, options: EmitterOptions) -> Iterator[Attributes]:
    first_ns, counts = step.first_token_ns, (step.input_tokens, step.output_tokens)
    yield {
        semconv.GEN_AI_RESPONSE_ID: step.response_id,
        semconv.GEN_AI_RESPONSE_MODEL: step.response_model,
        semconv.GEN_AI_USAGE_INPUT_TOKENS: step.input_tokens,
        semconv.GEN_AI_USAGE_OUTPUT_TOKENS: step.output_tokens,
        semconv.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS: step.cached_tokens,
        semconv.GEN_AI_RESPONSE_FINISH_REASONS: step.finish_reason and (step.finish_reason,),
        semconv.GEN_AI_RESPONSE_TIME_TO_FIRST_CHUNK: first_ns and max(first_ns - step.started_ns, 0) / 1e9,
    }
    yield {
        semconv.LLM_MODEL_NAME: step.model,
        semconv.LLM_PROVIDER: step.provider,
        semconv.LLM_TOKEN_COUNT_PROMPT: step.input_tokens,
        semconv.LLM_TOKEN_COUNT_COMPLETION: step.output_tokens,
        semconv.LLM_TOKEN_COUNT_TOTAL: None if None in counts else sum(count or 0 for count in counts),
        semconv.LLM_TOKEN_COUNT_PROMPT_DETAILS_CACHE_READ: step.cached_tokens,
        semconv.LLM_FINISH_REASON: step.finish_reason,
    }
    # The reply first, then the prompt from its last message to its first.
    if step.reply is not None and options.content.allows("spans", hidden_as="outputs"):
        reply = fitted([step.reply])
        about = {"finish_reason": step.finish_reason} if step.finish_reason is not None else {}
        yield {semconv.GEN_AI_OUTPUT_MESSAGES: _json([_as_json(one) | about for one in reply])}
        yield from _openinference(semconv.LLM_OUTPUT_MESSAGES, reply, options)
    if step.prompt and options.content.allows("spans", hidden_as="inputs"):
        prompt = fitted(step.prompt)
        instructions = [{"type": "text", "content": one.text} for one in prompt if one.role == "system"]
        spoken = [_as_json(one) for one in prompt if one.role != "system"]
        yield {
            semconv.GEN_AI_INPUT_MESSAGES: _json(spoken) if spoken else None,
            semconv.GEN_AI_SYSTEM_INSTRUCTIONS: _json(instructions) if instructions else None,
        }
        yield from reversed([*_openinference(semconv.LLM_INPUT_MESSAGES, prompt, options)])


def _documents(among: str, contexts: tuple[RetrievedContext, ...], options: EmitterOptions) -> Iterator[Attributes]:
    """OpenInference's list. Each document has at least one attribute, because readers close the gaps of a list."""
    content = options.content.allows("spans", hidden_as="documents")
    if not content and not options.openinference:
        return
    for index, context in enumerate(contexts[: MAX_DOCUMENTS_WITH_CONTENT if content else MAX_DOCUMENTS]):
        is_bare = not (content or context.id or context.score is not None)
        yield {
            semconv.DOCUMENT_ID.format(among, index): context.id,
            semconv.DOCUMENT_SCORE.format(among, index): context.score,
            semconv.DOCUMENT_CONTENT.format(among, index): bounded(context.text, MAX_PASSAGE_CHARS)
            if content
            else None,
            semconv.DOCUMENT_METADATA.format(among, index): json.dumps({"rank": index}) if is_bare else None,
        }


def _id_and_score(context: RetrievedContext) -> dict[str, str | float]:
    """A document without id and score is an empty object, so that the place in the list is the rank."""
    found: dict[str, str | float] = {} if context.id is None else {"id": clean_name(context.id)}
    if context.score is not None and math.isfinite(context.score):
        found["score"] = float(context.score)
    return found


def fitted(messages: Sequence[Message]) -> list[Message]:
    """The messages that one attribute holds as JSON: the instructions and the last ones, with long texts cut."""
    first = [one for one in messages[:-MAX_MESSAGES] if one.role == "system"][:1]
    kept = [*first, *messages[-MAX_MESSAGES:]]
    while True:
        for limit in _TEXT_LIMITS:
            cut = [_cut(one, limit) for one in kept]
            if len(_json([_as_json(one) for one in cut])) <= MAX_TEXT_CHARS:
                return cut
        del kept[len(first)]


def _cut(message: Message, limit: int) -> Message:
    requests = tuple(
        replace(
            one,
            id=one.id and clean_name(one.id),
            name=clean_name(one.name),
            arguments=one.arguments and bounded(one.arguments, limit),
        )
        for one in message.tool_requests[:_MAX_REQUESTS]
    )
    answers = message.tool_call_id and clean_name(message.tool_call_id)
    return replace(message, text=bounded(message.text, limit), tool_requests=requests, tool_call_id=answers)


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


def _openinference(among: str, messages: Sequence[Message], options: EmitterOptions) -> Iterator[Attributes]:
    for index, message in enumerate(messages if options.openinference else ()):
        attributes: dict[str, object] = {
            semconv.MESSAGE_ROLE.format(among, index): message.role,
            semconv.MESSAGE_CONTENT.format(among, index): message.text or None,
            semconv.MESSAGE_TOOL_CALL_ID.format(among, index): message.tool_call_id,
        }
        for place, request in enumerate(message.tool_requests):
            attributes |= {
                semconv.TOOL_CALL_ID.format(among, index, place): request.id,
                semconv.TOOL_CALL_NAME.format(among, index, place): request.name,
                semconv.TOOL_CALL_ARGUMENTS.format(among, index, place): request.arguments,
            }
        yield attributes
