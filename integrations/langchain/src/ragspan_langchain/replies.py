"""Reads what language models give back: whole replies, and the chunks of a stream."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ragspan.provider_replies import facts_of
from ragspan_langchain.payloads.freezing import Frozen, freeze
from ragspan_langchain.payloads.messages import content_text, prompt_text
from ragspan_langchain.runs import Reply


def reply_of(response: Any) -> Reply:
    """The reply in an `LLMResult`: of its first generation, for one prompt is asked for one answer."""
    try:
        generation = response.generations[0][0]
    except (AttributeError, IndexError, TypeError):
        return Reply("")
    about = [_mapping(getattr(generation, "generation_info", None)), _mapping(getattr(response, "llm_output", None))]
    message = getattr(generation, "message", None)
    if message is None:
        text = getattr(generation, "text", None)
        return Reply(text if isinstance(text, str) else "", (), about)
    about += [
        _mapping(getattr(message, "response_metadata", None)),
        _mapping(getattr(message, "usage_metadata", None)),
    ]
    calls = getattr(message, "tool_calls", None)
    if not calls:
        return Reply(content_text(message.content), (), about)
    calls = [call for call in calls if isinstance(call, dict)]
    arguments = freeze([call.get("args") for call in calls])
    return Reply(
        content_text(message.content), arguments, about, [(call.get("name"), call.get("id")) for call in calls]
    )


def result_of_tool(output: Any, messages: Sequence[Any]) -> Frozen:
    """What a tool gave back: the text of its message, or of its first one; else what it returned."""
    for message in messages:
        content = getattr(message, "content", None)
        if type(content) is str:
            return content
        if content is not None:
            return prompt_text(content)
    return output if type(output) is str else freeze(output)


def is_last(chunk: Any) -> bool:
    """Whether a streamed chunk says that it is the last one of its reply."""
    message = getattr(chunk, "message", None)
    if getattr(message, "chunk_position", None) == "last":
        return True
    about = (
        _mapping(getattr(message, "response_metadata", None)),
        _mapping(getattr(chunk, "generation_info", None)),
    )
    return facts_of(about).finish_reason is not None


def joined(tokens: Iterable[Any]) -> str:
    """The text of a stream's tokens; providers with content blocks send lists."""
    return "".join(token if isinstance(token, str) else content_text(token) for token in tokens)


_NOTHING: Mapping[str, Any] = {}


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else _NOTHING
