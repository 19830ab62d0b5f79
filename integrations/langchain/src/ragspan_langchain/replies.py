"""Reads what language models give back: whole replies, and the chunks of a stream."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ragspan_langchain.payloads.freezing import freeze
from ragspan_langchain.payloads.messages import content_text
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
    arguments = freeze([call.get("args") for call in calls if isinstance(call, dict)]) if calls else ()
    return Reply(content_text(message.content), arguments, about)


@dataclass(frozen=True, kw_only=True, slots=True)
class ReplyFacts:
    """What a provider tells about a reply, under whatever name."""

    model: str | None
    finish_reason: str | None
    input_tokens: int | None
    output_tokens: int | None


def facts_of(reply: Reply) -> ReplyFacts:
    places = [*reply.about, *(_mapping(place.get("token_usage")) for place in reply.about)]
    return ReplyFacts(
        model=_first(str, places, "model_name", "model"),
        finish_reason=_first(str, places, *_FINISH_REASONS),
        input_tokens=_first(int, places, "input_tokens", "prompt_tokens"),
        output_tokens=_first(int, places, "output_tokens", "completion_tokens"),
    )


def is_last(chunk: Any) -> bool:
    """Whether a streamed chunk says that it is the last one of its reply."""
    message = getattr(chunk, "message", None)
    if getattr(message, "chunk_position", None) == "last":
        return True
    about = (
        _mapping(getattr(message, "response_metadata", None)),
        _mapping(getattr(chunk, "generation_info", None)),
    )
    return bool(_first(str, about, *_FINISH_REASONS))


def joined(tokens: Iterable[Any]) -> str:
    """The text of a stream's tokens; providers with content blocks send lists."""
    return "".join(token if isinstance(token, str) else content_text(token) for token in tokens)


_NOTHING: Mapping[str, Any] = {}
_FINISH_REASONS = ("finish_reason", "stop_reason", "done_reason")


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else _NOTHING


def _first(kind: type[Any], places: Iterable[Mapping[str, Any]], *names: str) -> Any:
    found = (place.get(name) for name in names for place in places)
    return next((value for value in found if isinstance(value, kind) and value), None)
