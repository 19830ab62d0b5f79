"""What snapshots of LangChain's payloads hold: documents and messages. Nothing of the framework is imported here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from ragspan.capturing.snapshots import Hidden, Opaque, Snapshot

MEDIA = frozenset({"image", "image_url", "audio", "input_audio", "video", "base64"})
_MAX_DEPTH = 6

MESSAGE = Opaque()
"""Stands for a message in the payload of a step: what it carries may be the history of earlier turns."""

# Not frozen: these are made on the request path, where that takes three times as long.


@dataclass(slots=True, eq=False)
class Document:
    """A document at first sight; equal to none but itself."""

    text: str
    id: str | None
    metadata: Mapping[str, Any]


@dataclass(slots=True)
class Call:
    """A model's call of a tool: its words, not the user's."""

    name: Any
    id: Any
    arguments: Snapshot


@dataclass(slots=True)
class Message:
    """A chat message."""

    role: str
    """human, ai, system or tool."""
    content: str | list[Snapshot] = ""
    """A text, or blocks."""
    calls: list[Call] | None = None
    call_id: Any = None
    """Of a tool's message: the call that it answers."""
    artifact: Snapshot = None
    documents: Snapshot = None
    """Those that lie beside the content."""

    @property
    def text(self) -> str:
        """The text of the content, without thinking, pictures and sound."""
        return text_of(self.content)

    @property
    def prompt_text(self) -> str:
        """All text that the message shows to a model: also that of search results and documents within."""
        content = self.content
        text = content if isinstance(content, str) else "\n".join(_texts_of_blocks(content, nested=True))
        return text if self.documents is None else "\n".join([text, *texts_of_documents(self.documents)])

    @property
    def arguments(self) -> list[Snapshot]:
        """What it calls tools with."""
        return [call.arguments for call in self.calls or ()]


def text_of(content: Any) -> str:
    """The text of a message's content or of a token."""
    if isinstance(content, str):
        return content
    return "".join(_texts_of_blocks(content, nested=False)) if isinstance(content, list) else ""


def _texts_of_blocks(blocks: Iterable[Any], *, nested: bool, depth: int = 0) -> Iterator[str]:
    for block in blocks:
        if isinstance(block, str):
            yield block
        elif isinstance(block, dict):
            if isinstance(block.get("text"), str):
                yield block["text"]
            elif nested and depth < _MAX_DEPTH:
                yield from _nested_texts(block, depth + 1)


def _nested_texts(block: dict[Any, Any], depth: int) -> Iterator[str]:
    if block.get("type") in MEDIA:
        return
    for key in ("title", "content", "source", "data"):
        inner = block.get(key)
        if isinstance(inner, str):
            yield inner
        elif isinstance(inner, (list, dict)):
            yield from _texts_of_blocks([inner] if isinstance(inner, dict) else inner, nested=True, depth=depth)


def texts_of_documents(value: Snapshot, depth: int = 0) -> Iterator[str]:
    """Every text in documents of whatever form."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Document):
        yield value.text
    elif isinstance(value, (dict, list)) and depth < _MAX_DEPTH:
        for item in value.values() if isinstance(value, dict) else value:
            yield from texts_of_documents(item, depth + 1)


Found: TypeAlias = list[tuple[Document | str, float | None]]
"""Documents, each with its score where it came with one."""


def documents_in(value: Snapshot) -> list[Found]:
    """The documents in a payload, list by list: inside dictionaries, states and `(document, score)` pairs.

    Messages are not entered: what they carry may be the history of earlier turns.
    """
    if isinstance(value, Document):
        return [[(value, None)]]
    if isinstance(value, dict):
        return [found for item in value.values() for found in documents_in(item)]
    if isinstance(value, Hidden):
        return documents_in(value.inside)
    if not isinstance(value, list):
        return []
    pairs = [scored_document(item) for item in value]
    own: Found = [pair for pair in pairs if pair is not None]
    others = [found for item, pair in zip(value, pairs, strict=True) if pair is None for found in documents_in(item)]
    return [own, *others] if own else others


def scored_document(item: Snapshot) -> tuple[Document, float | None] | None:
    """A document, alone or as `(document, score)`."""
    if isinstance(item, Document):
        return item, None
    if isinstance(item, list) and len(item) == 2 and isinstance(item[0], Document):  # noqa: PLR2004  (document, score)
        return item[0], float(item[1]) if isinstance(item[1], (int, float)) else None
    return None
