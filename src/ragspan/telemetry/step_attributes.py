"""The spans of steps: what each kind is called, and its attributes, the most important first.

Documents have ids and scores; texts are written only if content is wanted.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from opentelemetry.trace import SpanKind

from ragspan.messages import Message
from ragspan.records import Generation, Reranking, Retrieval, RetrievedContext, Step, ToolCall
from ragspan.telemetry.content import ContentPolicy
from ragspan.telemetry.values import MAX_TEXT_CHARS, Attributes, bounded, clean_name, json_list

_MAX_DOCUMENTS = 50  # with two OpenInference attributes each they stay below OpenTelemetry's default limit of 128
_MAX_SHOWN_DOCUMENTS = 30  # three attributes each
_MAX_PASSAGE_CHARS = 2000
_MAX_MESSAGES = 20  # the last ones: OpenInference has two attributes for each, and more for calls of tools
_LONGEST_TEXT, _SHORTEST_TEXT = 4096, 128  # characters of a message's text: as many as leave all room in one attribute
_MAX_REQUESTS = 10
KINDS: Mapping[type[Step], tuple[str, str, SpanKind]] = {
    ToolCall: ("execute_tool", "TOOL", SpanKind.INTERNAL),
    Retrieval: ("retrieval", "RETRIEVER", SpanKind.CLIENT),
    Reranking: ("rerank", "RERANKER", SpanKind.INTERNAL),  # the conventions have no such operation
    Generation: ("chat", "LLM", SpanKind.CLIENT),
}
"""Operation and kind of a step's span, in OpenTelemetry's conventions, in OpenInference's, and for the SDK."""


def step_name(step: Step) -> str:
    """The name of the step's span."""
    match step:
        case Retrieval():
            name = step.data_source_id or step.name
        case Generation():
            name = step.model or ""
        case _:
            name = step.name
    return clean_name(f"{KINDS[type(step)][0]} {name}".rstrip())


def step_attributes(step: Step, content: ContentPolicy) -> tuple[Attributes, Attributes]:
    """The attributes of the step's span: those at its start, which samplers see, and the others."""

    def texts(name: str, text: str | None, hidden_as: Any, copy: str) -> Attributes:
        """A text under its own name and under OpenInference's names for it and its type."""
        if text is None or not content.allows(hidden_as=hidden_as):
            return {}
        mime = "application/json" if text.startswith(("{", "[")) else "text/plain"
        return {name: text, f"{copy}.value": text, f"{copy}.mime_type": mime}

    operation, kind, _ = KINDS[type(step)]
    start: dict[str, object] = {"openinference.span.kind": kind, "gen_ai.operation.name": operation}
    rest: dict[str, object]
    match step:
        case ToolCall():
            start |= {"gen_ai.tool.name": step.name, "gen_ai.tool.call.id": step.call_id}
            rest = {
                "tool.name": step.name,
                **texts("gen_ai.tool.call.arguments", step.arguments, "inputs", "input"),
                **texts("gen_ai.tool.call.result", step.result, "outputs", "output"),
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
                **texts("gen_ai.retrieval.query.text", step.query, "inputs", "input"),
                **_documents("retrieval.documents", step.contexts, content),
            }
        case Reranking():
            rest = {
                "reranker.top_k": step.top_k,
                "reranker.model_name": step.model,
                **texts("reranker.query", step.query, "inputs", "input"),
                **_documents("reranker.output_documents", step.contexts, content),
                **_documents("reranker.input_documents", step.given, content),
            }
        case Generation():
            start |= {
                "gen_ai.provider.name": step.provider,
                "gen_ai.request.model": step.model,
                "gen_ai.request.stream": step.streamed or None,
            }
            rest = _of_generation(step, content)
    return start, rest


def _of_generation(step: Generation, content: ContentPolicy) -> dict[str, object]:
    first_ns, counts = step.first_token_ns, (step.input_tokens, step.output_tokens)
    found: dict[str, object] = {
        "gen_ai.response.id": step.response_id,
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


def _documents(among: str, contexts: tuple[RetrievedContext, ...], content: ContentPolicy) -> Attributes:
    """OpenInference's list. Each document has at least one attribute, because readers close the gaps of a list."""
    found: dict[str, object] = {}
    is_shown = content.allows(hidden_as="documents")
    for index, context in enumerate(contexts[: _MAX_SHOWN_DOCUMENTS if is_shown else _MAX_DOCUMENTS]):
        one = f"{among}.{index}.document"
        found |= {f"{one}.id": context.id, f"{one}.score": context.score}
        if is_shown:
            found[f"{one}.content"] = bounded(context.text, _MAX_PASSAGE_CHARS)
        elif not context.id and context.score is None:
            found[f"{one}.metadata"] = json.dumps({"rank": index})
    return found


def _id_and_score(context: RetrievedContext) -> dict[str, str | float]:
    """A document without id and score is an empty object, so that the place in the list is the rank."""
    found: dict[str, str | float] = {} if context.id is None else {"id": clean_name(context.id)}
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
    requests = (
        replace(one, arguments=one.arguments and bounded(one.arguments, limit))
        for one in message.tool_requests[:_MAX_REQUESTS]
    )
    return replace(message, text=bounded(message.text, limit), tool_requests=tuple(requests))


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
        one = f"{among}.{index}.message"
        found |= {
            f"{one}.role": message.role,
            f"{one}.content": message.text or None,
            f"{one}.tool_call_id": message.tool_call_id,
        }
        for place, request in enumerate(message.tool_requests):
            call = f"{one}.tool_calls.{place}.tool_call"
            found[f"{call}.id"] = request.id
            found[f"{call}.function.name"] = request.name
            found[f"{call}.function.arguments"] = request.arguments
    return found
