"""Spans that the Vercel AI SDK writes itself: `ai.operationId`, `ai.prompt.messages`, `ai.response.text`, `ai.toolCall.*`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ragspan.request import ModelStep, PayloadMessage, Step, ToolStep
from ragspan.safe_copy import OPAQUE
from ragspan_receiver.readers.payloads import Payloads, as_fields, as_text, json_of, text, whole
from ragspan_receiver.readers.steps import ReadSpan
from ragspan_receiver.spans import TracedSpan

OPERATION = "ai.operationId"
_TOOL = "ai.toolCall"
_CHAINS = ("ai.generateText", "ai.streamText", "ai.generateObject", "ai.streamObject")
_CALLS = (".doGenerate", ".doStream")
_ABOUT = "ai.telemetry.metadata."


def read(span: TracedSpan, payloads: Payloads) -> ReadSpan | None:
    """The step of a span; None for embeddings."""
    about = span.attributes
    operation = str(about.get(OPERATION)).split(" ")[0]
    is_call = operation.endswith(_CALLS) and operation.startswith(_CHAINS)
    if operation not in {_TOOL, *_CHAINS} and not is_call:
        return None
    name = text(about, "ai.toolCall.name", "ai.telemetry.functionId") or span.name
    read = ReadSpan(
        span=span,
        chain=Step(name=name, parent=None, started_ns=span.start_ns),
        framework="vercel_ai",
        metadata={key.removeprefix(_ABOUT): value for key, value in about.items() if key.startswith(_ABOUT)},
    )
    said, called = (
        about.get("ai.response.text") or about.get("ai.response.object"),
        _listed(about, "ai.response.toolCalls"),
    )
    fields = {"content": as_text(said) or "", "tool_calls": [_call(one) for one in called]}
    reply = payloads.message(fields, "ai") if said or called else None
    if operation == _TOOL:
        given = payloads.read(about.get("ai.toolCall.args", about.get("ai.toolCall.input")))
        gave = payloads.read(about.get("ai.toolCall.result", about.get("ai.toolCall.output")))
        read.become(ToolStep, call_id=text(about, "ai.toolCall.id"), inputs=given, output=gave)
    elif is_call:
        used = {
            "input_tokens": whole(about, "ai.usage.inputTokens", "ai.usage.promptTokens"),
            "output_tokens": whole(about, "ai.usage.outputTokens", "ai.usage.completionTokens"),
            "finish_reason": text(about, "ai.response.finishReason"),
        }
        read.become(
            ModelStep,
            inputs=[each for one in _listed(about, "ai.prompt.messages") for each in _messages(one, payloads)],
            reply=reply,
            model=text(about, "ai.model.id"),
            provider=text(about, "ai.model.provider"),
            provider_metadata=[used],
        )
    else:
        asked = as_fields(about.get("ai.prompt"))  # a prompt, or messages; the system prompt is not a question
        listed = [*_listed(asked, "messages"), *_listed(asked, "prompt")]
        messages = [each for one in listed for each in _messages(one, payloads)]
        prompt = asked.get("prompt")
        read.chain.inputs = {"messages": messages} if messages else prompt if isinstance(prompt, str) else OPAQUE
        read.chain.output = reply or OPAQUE
    return read


def _listed(fields: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    value = json_of(fields.get(name))
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []


def _call(part: Mapping[str, Any]) -> Mapping[str, Any]:
    given = part.get("input", part.get("args"))
    return {"id": part.get("toolCallId"), "name": part.get("toolName"), "args": given}


def _messages(value: Mapping[str, Any], payloads: Payloads) -> Iterator[PayloadMessage]:
    """A message of the SDK; results of several tools are one each."""
    role, content = str(value.get("role", "user")), value.get("content")
    if isinstance(content, str):
        yield payloads.message({"content": content}, role)
        return
    parts = _listed(value, "content")
    for part in parts:
        if part.get("type") == "tool-result":
            output = part.get("output", part.get("result"))
            output = output["value"] if isinstance(output, Mapping) and "value" in output else output
            about = {"content": as_text(output) or "", "tool_call_id": part.get("toolCallId")}
            yield payloads.message(about, "tool")
    texts = [part["text"] for part in parts if part.get("type") == "text" and isinstance(part.get("text"), str)]
    calls = [_call(part) for part in parts if part.get("type") == "tool-call"]
    if texts or calls:
        yield payloads.message({"content": "\n".join(texts), "tool_calls": calls}, role)
