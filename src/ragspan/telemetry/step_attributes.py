"""The attributes of a step: what it is, its input and its output, in groups, the most important first.

Documents have ids and scores; texts are written only if content is wanted.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from ragspan.messages import Message, ToolRequest
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
_MIN_TEXT_CHARS = 100
_MAX_REQUESTS = 10


def essentials(step: Step) -> Attributes:
    """The attributes at the start of the span, for a sampler."""
    match step:
        case ToolCall():
            return {semconv.GEN_AI_TOOL_NAME: step.name, semconv.GEN_AI_TOOL_CALL_ID: step.call_id}
        case Retrieval():
            return {
                semconv.GEN_AI_DATA_SOURCE_ID: step.data_source_id,
                semconv.GEN_AI_RETRIEVAL_TOP_K: step.top_k,
                semconv.GEN_AI_TOOL_NAME: step.tool_name,
                semconv.GEN_AI_TOOL_CALL_ID: step.tool_call_id,
            }
        case Generation():
            return {
                semconv.GEN_AI_PROVIDER_NAME: step.provider,
                semconv.GEN_AI_REQUEST_MODEL: step.model,
                semconv.GEN_AI_REQUEST_STREAM: step.streamed or None,
            }
        case _:
            return {}


def step_groups(step: Step, options: EmitterOptions) -> Iterator[Attributes]:
    """The other attributes."""
    shows_input = options.content.allows("spans", hidden_as="inputs")
    shows_output = options.content.allows("spans", hidden_as="outputs")
    match step:
        case ToolCall():
            yield {semconv.TOOL_NAME: step.name if options.openinference else None}
            yield _texts(semconv.GEN_AI_TOOL_CALL_ARGUMENTS, _INPUT, step.arguments if shows_input else None)
            yield _texts(semconv.GEN_AI_TOOL_CALL_RESULT, _OUTPUT, step.result if shows_output else None)
        case Retrieval():
            yield {semconv.GEN_AI_RETRIEVAL_DOCUMENTS: _ids_and_scores(step.contexts)}
            yield _texts(semconv.GEN_AI_RETRIEVAL_QUERY_TEXT, _INPUT, step.query if shows_input else None)
            yield from _documents(semconv.RETRIEVAL_DOCUMENTS, step.contexts, options)
        case Reranking():
            yield {semconv.RERANKER_TOP_K: step.top_k, semconv.RERANKER_MODEL_NAME: step.model}
            yield _texts(semconv.RERANKER_QUERY, _INPUT, step.query if shows_input else None)
            yield from _documents(semconv.RERANKER_OUTPUT_DOCUMENTS, step.contexts, options)
            yield from _documents(semconv.RERANKER_INPUT_DOCUMENTS, step.given, options)
        case Generation():
            yield from _generation_groups(step)
            # The reply first, then the prompt from its last message to its first.
            if shows_output and step.reply is not None:
                yield from _reply_groups(step.reply, step.finish_reason, options)
            if shows_input and step.prompt:
                yield from _prompt_groups(step.prompt, options)


_INPUT = (semconv.INPUT_VALUE, semconv.INPUT_MIME_TYPE)
_OUTPUT = (semconv.OUTPUT_VALUE, semconv.OUTPUT_MIME_TYPE)


def _texts(name: str, copy: tuple[str, str], text: str | None) -> Attributes:
    """A text under its own name and under OpenInference's names for it and its type."""
    if text is None:
        return {}
    return {
        name: text,
        copy[0]: text,
        copy[1]: semconv.MIME_JSON if text.startswith(("{", "[")) else semconv.MIME_TEXT,
    }


def _generation_groups(generation: Generation) -> Iterator[Attributes]:
    first_ns, counts = generation.first_token_ns, (generation.input_tokens, generation.output_tokens)
    yield {
        semconv.GEN_AI_RESPONSE_ID: generation.response_id,
        semconv.GEN_AI_RESPONSE_MODEL: generation.response_model,
        semconv.GEN_AI_USAGE_INPUT_TOKENS: generation.input_tokens,
        semconv.GEN_AI_USAGE_OUTPUT_TOKENS: generation.output_tokens,
        semconv.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS: generation.cached_tokens,
        semconv.GEN_AI_RESPONSE_FINISH_REASONS: generation.finish_reason and (generation.finish_reason,),
        semconv.GEN_AI_RESPONSE_TIME_TO_FIRST_CHUNK: (
            None if first_ns is None else max(first_ns - generation.started_ns, 0) / 1e9
        ),
    }
    yield {
        semconv.LLM_MODEL_NAME: generation.model,
        semconv.LLM_PROVIDER: generation.provider,
        semconv.LLM_TOKEN_COUNT_PROMPT: generation.input_tokens,
        semconv.LLM_TOKEN_COUNT_COMPLETION: generation.output_tokens,
        semconv.LLM_TOKEN_COUNT_TOTAL: None if None in counts else sum(count or 0 for count in counts),
        semconv.LLM_TOKEN_COUNT_PROMPT_DETAILS_CACHE_READ: generation.cached_tokens,
        semconv.LLM_FINISH_REASON: generation.finish_reason,
    }


def _documents(among: str, contexts: tuple[RetrievedContext, ...], options: EmitterOptions) -> Iterator[Attributes]:
    """OpenInference's list. Each document has at least one attribute, because readers close the gaps of a list."""
    content = options.content.allows("spans", hidden_as="documents")
    if not content and not options.openinference:
        return
    for index, context in enumerate(contexts[: MAX_DOCUMENTS_WITH_CONTENT if content else MAX_DOCUMENTS]):
        document: dict[str, object] = {
            semconv.DOCUMENT_ID.format(among, index): context.id,
            semconv.DOCUMENT_SCORE.format(among, index): context.score,
        }
        if content:
            document[semconv.DOCUMENT_CONTENT.format(among, index)] = bounded(context.text, MAX_PASSAGE_CHARS)
        elif not context.id and context.score is None:
            document[semconv.DOCUMENT_METADATA.format(among, index)] = json.dumps({"rank": index})
        yield document


def _ids_and_scores(contexts: tuple[RetrievedContext, ...]) -> str:
    """A JSON list with an object for each document, in rank order; as many as one attribute holds.

    A document without id and score is an empty object, so that the place in the list is the rank.
    """
    documents: list[dict[str, str | float]] = []
    for context in contexts[:MAX_DOCUMENTS]:
        documents.append({} if context.id is None else {"id": clean_name(context.id)})
        if context.score is not None and math.isfinite(context.score):
            documents[-1]["score"] = float(context.score)
    return json_list(documents)


def _reply_groups(message: Message, finish_reason: str | None, options: EmitterOptions) -> Iterator[Attributes]:
    reply = fitted([message])
    about = {} if finish_reason is None else {"finish_reason": finish_reason}
    yield {semconv.GEN_AI_OUTPUT_MESSAGES: _json([_as_json(one) | about for one in reply])}
    if options.openinference:
        yield from _openinference(semconv.LLM_OUTPUT_MESSAGES, reply)


def _prompt_groups(messages: Sequence[Message], options: EmitterOptions) -> Iterator[Attributes]:
    prompt = fitted(messages)
    instructions = [{"type": "text", "content": one.text} for one in prompt if one.role == "system"]
    spoken = [_as_json(one) for one in prompt if one.role != "system"]
    yield {
        semconv.GEN_AI_INPUT_MESSAGES: _json(spoken) if spoken else None,
        semconv.GEN_AI_SYSTEM_INSTRUCTIONS: _json(instructions) if instructions else None,
    }
    if options.openinference:
        yield from reversed([*_openinference(semconv.LLM_INPUT_MESSAGES, prompt)])


def fitted(messages: Sequence[Message]) -> list[Message]:
    """The messages that one attribute holds as JSON: the instructions and the last ones, with long texts cut."""
    first = [one for one in messages[:-MAX_MESSAGES] if one.role == "system"][:1]
    kept = [*first, *messages[-MAX_MESSAGES:]]
    limit = MAX_TEXT_CHARS // 2
    while True:
        cut = [_cut(one, limit) for one in kept]
        if len(_json([_as_json(one) for one in cut])) <= MAX_TEXT_CHARS:
            return cut
        if limit > _MIN_TEXT_CHARS:
            limit = limit * 3 // 4
        else:
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
        parts = [{"type": "tool_call_response", "id": message.tool_call_id, "response": message.text}]
    else:
        parts = [{"type": "text", "content": message.text}] if message.text else []
        parts += [_request_part(request) for request in message.tool_requests]
    return {"role": message.role, "parts": parts}


def _request_part(request: ToolRequest) -> dict[str, Any]:
    try:
        arguments = json.loads(request.arguments) if request.arguments else None
    except ValueError:  # the text was cut, or the model wrote no JSON
        arguments = request.arguments
    return {"type": "tool_call", "id": request.id, "name": request.name, "arguments": arguments}


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _openinference(among: str, messages: Sequence[Message]) -> Iterator[Attributes]:
    for index, message in enumerate(messages):
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
