"""Reads what language models give back: whole replies, and the chunks of a stream."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ragspan_langchain.payloads import content_text, freeze
from ragspan_langchain.runs import Reply


def reply_of(response: Any) -> Reply:
    """The reply in an `LLMResult`: of its first generation, for one prompt is asked for one answer."""
    generations = getattr(response, "generations", None)
    batch = generations[0] if isinstance(generations, list) and generations else None
    generation = batch[0] if isinstance(batch, list) and batch else None
    message = getattr(generation, "message", None)
    about = _mapping(getattr(message, "response_metadata", None))
    info = _mapping(getattr(generation, "generation_info", None))
    overall = _mapping(getattr(response, "llm_output", None))
    usage = _mapping(getattr(message, "usage_metadata", None))
    tokens = _mapping(overall.get("token_usage"))
    text = getattr(generation, "text", None)
    return Reply(
        text=content_text(message.content) if message is not None else text if isinstance(text, str) else "",
        calls=_arguments(message),
        model=_first_text(about.get("model_name"), about.get("model"), overall.get("model_name")),
        finish_reason=_first_text(
            about.get("finish_reason"), about.get("stop_reason"), about.get("done_reason"), info.get("finish_reason")
        ),
        input_tokens=_first_count(usage.get("input_tokens"), tokens.get("prompt_tokens")),
        output_tokens=_first_count(usage.get("output_tokens"), tokens.get("completion_tokens")),
    )


def is_last(chunk: Any) -> bool:
    """Whether a streamed chunk says that it is the last one of its reply."""
    message = getattr(chunk, "message", None)
    if getattr(message, "chunk_position", None) == "last":
        return True
    about = _mapping(getattr(message, "response_metadata", None))
    info = _mapping(getattr(chunk, "generation_info", None))
    reasons = (about.get("finish_reason"), about.get("stop_reason"), about.get("done_reason"), info.get("finish_reason"))
    return _first_text(*reasons) is not None


def joined(tokens: Iterable[Any]) -> str:
    """The text of a stream's tokens; providers with content blocks send lists."""
    return "".join(token if isinstance(token, str) else content_text(token) for token in tokens)


def _arguments(message: Any) -> Any:
    calls = getattr(message, "tool_calls", None)
    return freeze([call.get("args") for call in calls if isinstance(call, dict)]) if calls else ()


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _first_text(*values: Any) -> str | None:
    return next((value for value in values if isinstance(value, str) and value), None)


def _first_count(*values: Any) -> int | None:
    return next((value for value in values if isinstance(value, int) and value >= 0), None)
