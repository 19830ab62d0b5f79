"""Messages and prompts: who speaks, and the text of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple

from langchain_core.messages import BaseMessage

from ragspan_langchain.payloads.shapes import Shape, shape_of

ROLES = {
    "human": "human",
    "HumanMessageChunk": "human",
    "AIMessageChunk": "ai",
    "SystemMessageChunk": "system",
    "ToolMessageChunk": "tool",
    "user": "human",
    "ai": "ai",
    "assistant": "ai",
    "system": "system",
    "developer": "system",
    "tool": "tool",
    "function": "tool",
}
_MAX_DEPTH = 6
_MAX_DOCUMENTS = 2000


def role_of(message: BaseMessage) -> str:
    role = ROLES.get(message.type)
    if role is None:
        kind = message.type.lower().removesuffix("messagechunk")
        role = ROLES.get(str(getattr(message, "role", "")).lower() if kind == "chat" else kind, "human")
    return role


def content_text(content: Any) -> str:
    """The text of a message's content, without thinking, pictures and sound."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(_block_texts(content, nested=False))
    return ""


def prompt_text(content: Any) -> str:
    """All text that a message's content shows to a model: also that of search results and documents within."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(_block_texts(content, nested=True))
    return ""


def _block_texts(blocks: Any, *, nested: bool, depth: int = 0) -> Iterator[str]:
    for block in blocks:
        if isinstance(block, str):
            yield block
        elif isinstance(block, dict):
            if isinstance(block.get("text"), str):
                yield block["text"]
            elif nested and depth < _MAX_DEPTH:
                yield from _nested_texts(block, depth + 1)


def _nested_texts(block: dict[Any, Any], depth: int) -> Iterator[str]:
    if block.get("type") in {"image", "image_url", "audio", "input_audio", "video", "base64"}:
        return
    for key in ("title", "content", "source", "data"):
        inner = block.get(key)
        if isinstance(inner, str):
            yield inner
        elif isinstance(inner, (list, dict)):
            yield from _block_texts([inner] if isinstance(inner, dict) else inner, nested=True, depth=depth)


class PromptPart(NamedTuple):
    """One message of a prompt, or all of a plain prompt."""

    role: str
    text: str
    beside: Any = None
    """Of a model's message its tool calls, of a tool's the id of the call: the program's own objects."""


def prompt_parts(messages: Iterable[Any], documents: Any = None) -> list[PromptPart]:
    """The parts of a chat prompt, or of a plain one.

    Args:
        messages: the messages, or the one text.
        documents: some models are called with them beside the messages; others take them beside a message's content.
    """
    parts = []
    for message in messages:
        if isinstance(message, str):
            parts.append(PromptPart("human", message))
        elif shape_of(message) is Shape.MESSAGE:
            text = message.content
            if type(text) is not str:
                text = prompt_text(text)
            beside = message.additional_kwargs
            if beside and "documents" in beside:
                text = "\n".join([text, *_all_texts(beside["documents"])])
            role = ROLES.get(message.type) or role_of(message)
            if role == "ai":
                parts.append(PromptPart(role, text, getattr(message, "tool_calls", None)))
            elif role == "tool":
                parts.append(PromptPart(role, text, getattr(message, "tool_call_id", None)))
            else:
                parts.append(PromptPart(role, text))
    if documents is not None:
        parts.append(PromptPart("system", "\n".join(_all_texts(documents))))
    return parts


def _all_texts(value: Any, depth: int = 0) -> Iterator[str]:
    """Every text in documents of whatever form, within bounds."""
    shape = shape_of(value)
    if isinstance(value, str):
        yield value
    elif shape is Shape.DOCUMENT:
        yield value.page_content
    elif depth < _MAX_DEPTH and shape in {Shape.FIELDS, Shape.ITEMS}:
        for item in islice(dict.values(value) if shape is Shape.FIELDS else value, _MAX_DOCUMENTS):
            yield from _all_texts(item, depth + 1)
