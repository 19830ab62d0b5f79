"""Spans that the Vercel AI SDK writes itself: `ai.operationId`, `ai.prompt.messages`, `ai.response.text`, `ai.toolCall.*`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ragspan.capturing import OPAQUE, Snapshot
from ragspan.request import ModelStep, PayloadMessage, Step, ToolStep
from ragspan_receiver.readers.payloads import Payloads, as_text, json_of, text, whole
from ragspan_receiver.readers.steps import ReadSpan
from ragspan_receiver.spans import TracedSpan

OPERATION = "ai.operationId"
_TOOL = "ai.toolCall"
_CHAINS = ("ai.generateText", "ai.streamText", "ai.generateObject", "ai.streamObject")
_CALLS = (".doGenerate", ".doStream")
_ABOUT = "ai.telemetry.metadata."


def read(span: TracedSpan, payloads: Payloads) -> ReadSpan | None:
    """The step of a span; None for embeddings."""
    attributes = span.attributes
    operation = str(attributes.get(OPERATION)).split(" ")[0]
    is_call = operation.endswith(_CALLS) and operation.startswith(_CHAINS)
    if operation not in {_TOOL, *_CHAINS} and not is_call:
        return None
    about = {key.removeprefix(_ABOUT): value for key, value in attributes.items() if key.startswith(_ABOUT)}
    name = text(attributes, "ai.toolCall.name", "ai.telemetry.functionId") or span.name
    read = ReadSpan(
        span=span,
        chain=Step(name=name, parent=None, started_ns=span.start_ns),
        framework="vercel_ai",
        metadata=about,
    )
    if operation == _TOOL:
        given = payloads.read(_first(attributes, "ai.toolCall.args", "ai.toolCall.input"))
        gave = payloads.read(_first(attributes, "ai.toolCall.result", "ai.toolCall.output"))
        read.become(ToolStep, call_id=text(attributes, "ai.toolCall.id"), inputs=given, output=gave)
    elif is_call:
        _read_model(read, payloads)
    else:
        read.chain.inputs = _asked(json_of(attributes.get("ai.prompt")), payloads)
        read.chain.output = _said(attributes, payloads) or OPAQUE
    return read


def _first(attributes: Mapping[str, Any], *names: str) -> Any:
    return next((attributes[name] for name in names if attributes.get(name) is not None), None)


def _asked(given: Any, payloads: Payloads) -> Snapshot:
    """A prompt, or messages; the system prompt is not a question."""
    if not isinstance(given, dict):
        return OPAQUE
    messages = [message for one in _listed(given.get("messages")) for message in _messages(one, payloads)]
    asked = given.get("prompt")
    messages += [message for one in _listed(asked) for message in _messages(one, payloads)]
    return {"messages": messages} if messages else asked if isinstance(asked, str) else OPAQUE


def _read_model(read: ReadSpan, payloads: Payloads) -> None:
    attributes = read.span.attributes
    given = _listed(json_of(attributes.get("ai.prompt.messages")))
    usage = {
        name: next((found for key in keys if (found := whole(attributes, f"ai.usage.{key}")) is not None), None)
        for name, keys in {
            "input_tokens": ("inputTokens", "promptTokens"),
            "output_tokens": ("outputTokens", "completionTokens"),
        }.items()
    }
    read.become(
        ModelStep,
        inputs=[message for one in given for message in _messages(one, payloads)],
        reply=_said(attributes, payloads),
        model=text(attributes, "ai.model.id"),
        provider=text(attributes, "ai.model.provider"),
        provider_metadata=[usage | {"finish_reason": text(attributes, "ai.response.finishReason")}],
    )


def _said(attributes: Mapping[str, Any], payloads: Payloads) -> PayloadMessage | None:
    said, calls = _first(attributes, "ai.response.text", "ai.response.object"), attributes.get("ai.response.toolCalls")
    called = [_call(one) for one in _listed(json_of(calls))]
    return payloads.message({"content": as_text(said) or "", "tool_calls": called}, "ai") if said or called else None


def _listed(value: Any) -> list[Mapping[str, Any]]:
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
    parts = _listed(content)
    for part in parts:
        if part.get("type") == "tool-result":
            yield payloads.message({"content": _result(part), "tool_call_id": part.get("toolCallId")}, "tool")
    texts = [part["text"] for part in parts if part.get("type") == "text" and isinstance(part.get("text"), str)]
    calls = [_call(part) for part in parts if part.get("type") == "tool-call"]
    if texts or calls:
        yield payloads.message({"content": "\n".join(texts), "tool_calls": calls}, role)


def _result(part: Mapping[str, Any]) -> str:
    output = part.get("output", part.get("result"))
    if isinstance(output, Mapping) and "value" in output:
        output = output["value"]
    return as_text(output) or ""
