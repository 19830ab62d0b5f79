"""What a model was given and what it replied, as attributes; for spans with content only."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ragspan.records import Generation
from ragspan.step_texts import Message, ToolRequest
from ragspan.telemetry import semconv
from ragspan.telemetry.options import EmitterOptions
from ragspan.telemetry.values import MAX_TEXT_CHARS, bounded, named

MAX_MESSAGES = 20
"""The last ones of a conversation: OpenInference takes two attributes for each, and more for calls of tools."""
_MIN_TEXT_CHARS = 100
_MAX_REQUESTS = 10


def message_groups(generation: Generation, options: EmitterOptions) -> Iterator[Mapping[str, object]]:
    """The attributes in groups, the most important first: the reply, and of the prompt the last message."""
    allows = options.content.allows
    if allows("spans", hidden_as="outputs") and generation.reply is not None:
        reply = fitted([generation.reply])
        about = {} if generation.finish_reason is None else {"finish_reason": generation.finish_reason}
        yield {semconv.GEN_AI_OUTPUT_MESSAGES: _json([_as_json(one) | about for one in reply])}
        if options.openinference:
            yield from _openinference("llm.output_messages", reply)
    if allows("spans", hidden_as="inputs") and generation.prompt:
        prompt = fitted(generation.prompt)
        instructions = [_text_part(one.text) for one in prompt if one.role == "system"]
        spoken = [_as_json(one) for one in prompt if one.role != "system"]
        yield {
            semconv.GEN_AI_INPUT_MESSAGES: _json(spoken) if spoken else None,
            semconv.GEN_AI_SYSTEM_INSTRUCTIONS: _json(instructions) if instructions else None,
        }
        if options.openinference:
            yield from reversed([*_openinference("llm.input_messages", prompt)])


def fitted(messages: Sequence[Message]) -> list[Message]:
    """The messages as one attribute holds them, as JSON: long texts are cut; the instructions and the last messages stay."""
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
            id=one.id and named(one.id),
            name=named(one.name),
            arguments=one.arguments and bounded(one.arguments, limit),
        )
        for one in message.tool_requests[:_MAX_REQUESTS]
    )
    answers = message.tool_call_id and named(message.tool_call_id)
    return replace(message, text=bounded(message.text, limit), tool_requests=requests, tool_call_id=answers)


def _as_json(message: Message) -> dict[str, Any]:
    """As the conventions have it."""
    if message.role == "tool":
        parts = [{"type": "tool_call_response", "id": message.tool_call_id, "response": message.text}]
    else:
        parts = [_text_part(message.text)] if message.text else []
        parts += [_request_part(request) for request in message.tool_requests]
    return {"role": message.role, "parts": parts}


def _text_part(text: str) -> dict[str, Any]:
    return {"type": "text", "content": text}


def _request_part(request: ToolRequest) -> dict[str, Any]:
    try:
        arguments = json.loads(request.arguments) if request.arguments else None
    except ValueError:  # it was cut, or the model wrote no JSON
        arguments = request.arguments
    return {"type": "tool_call", "id": request.id, "name": request.name, "arguments": arguments}


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _openinference(among: semconv.MessageList, messages: Sequence[Message]) -> Iterator[Mapping[str, object]]:
    for index, message in enumerate(messages):
        attributes: dict[str, object] = {
            semconv.message_attribute(among, index, "role"): message.role,
            semconv.message_attribute(among, index, "content"): message.text or None,
            semconv.message_attribute(among, index, "tool_call_id"): message.tool_call_id
            and named(message.tool_call_id),
        }
        for place, request in enumerate(message.tool_requests):
            attributes |= {
                semconv.tool_request_attribute(among, index, place, "id"): request.id,
                semconv.tool_request_attribute(among, index, place, "function.name"): request.name,
                semconv.tool_request_attribute(among, index, place, "function.arguments"): request.arguments,
            }
        yield attributes
