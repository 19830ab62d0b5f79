"""The contents of the payloads of a request's runs: documents, messages and calls of tools, and how they are read.

An integration's snapshots of its framework's payloads are made of these.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, repeat, zip_longest
from typing import Any

from ragspan.matching import Span
from ragspan.safe_copy import CUT, Hidden, Opaque, Snapshot

MEDIA = frozenset({"image", "image_url", "audio", "input_audio", "video", "base64"})
"""Types of content blocks that hold no text."""
MAX_FIELDS = 1000  # of what a model wrote as JSON, that are read
_MAX_JSON = 100_000
_MAX_DEPTH = 6
_MAX_COMPARED = 200_000  # characters; splitting more would block other threads
ROLES = {
    **dict.fromkeys(("human", "user", "用户"), "human"),
    **dict.fromkeys(("ai", "assistant", "bot", "chatbot", "助手"), "ai"),
    **dict.fromkeys(("system", "developer"), "system"),
    **dict.fromkeys(("tool", "function"), "tool"),
}
_ROLE = "|".join(ROLES)
_line = re.compile(  # of a text after a line break: a search for that takes no time
    rf"\n[ \t]*(?:[-*>] )?\**(?P<role>{_ROLE})(?: ?\([^)\n]{{0,60}}\))?\**[ \t]*[:\uff1a]", re.IGNORECASE
)
_tagged = re.compile(
    rf"<message (?:type|role)=[\"'](?P<role>{_ROLE})[\"'][^>]{{0,200}}>(?P<said>.*?)</message>",
    re.IGNORECASE | re.DOTALL,
)
_next_section = re.compile(r"\n[ \t]*\n(?=[#<\[]|[A-Z][\w ]{0,40}:)")

UNREAD = MEDIA | {"file", "media", "input_image", "input_file"}
"""Types of content blocks that hold no text, or may hold none."""
MESSAGE = Opaque()
"""Replaces a message in the payload of a step: what it carries may be the history of earlier turns."""

# Not frozen: these are made on the request path, where that takes three times as long.


@dataclass(slots=True, eq=False)
class Document:
    """A document at first sight; equal to none but itself."""

    text: str
    id: str | None
    metadata: Mapping[str, Any]
    written: str | None = None
    """What the framework itself writes into prompts of it, its metadata included, where that is known."""


@dataclass(slots=True)
class Call:
    """A model's call of a tool: its words, not the user's."""

    name: Any
    id: Any
    arguments: Snapshot


@dataclass(slots=True)
class PayloadMessage:
    """A chat message in a payload, or a reply of a model."""

    role: str  # human, ai, system or tool
    content: str | list[Snapshot] = ""  # a text, or blocks
    calls: list[Call] | None = None
    call_id: Any = None  # the call that a tool's message answers
    failed: bool = False  # a tool's message reports an error
    artifact: Snapshot = None
    documents: Snapshot = None  # documents that came beside the content
    unread: Sequence[str] = ()
    """The ends of what it shows beside texts: pictures, sound, files, or their addresses."""
    searched: bool = False  # the provider searched by itself for this reply

    @property
    def text(self) -> str:
        """The text of the content, without thinking, pictures and sound."""
        return self.content if isinstance(self.content, str) else content_text(self.content)

    @property
    def prompt_text(self) -> str:
        """All text that the message shows to a model: also that of search results and documents within."""
        content = self.content
        text = content if isinstance(content, str) else "\n".join(_texts_of_blocks(content, nested=True))
        return text if self.documents is None else "\n".join([text, *texts_in(self.documents)])

    @property
    def arguments(self) -> list[Snapshot]:
        return [call.arguments for call in self.calls or ()]

    @property
    def calls_text(self) -> str | None:
        """The same as a text: one call's arguments, or a list of them."""
        own = self.arguments
        return as_json(own[0] if len(own) == 1 else own) if own else None


def content_text(content: Any) -> str:
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
            elif nested and depth < _MAX_DEPTH and block.get("type") not in MEDIA:
                for key in ("title", "content", "source", "data"):
                    inner = block.get(key)
                    inside = inner if isinstance(inner, list) else [inner]
                    yield from _texts_of_blocks(inside, nested=True, depth=depth + 1)


class FilledPrompt(Opaque):
    """What a prompt template gave out."""

    __slots__ = ("messages",)

    def __init__(self, messages: Sequence[Snapshot] = ()) -> None:
        self.identity = 0  # made on the request path: `super` would take as long as the rest
        self.messages = messages


def tool_messages(output: Snapshot) -> list[PayloadMessage]:
    """The messages in a tool's output: itself, or those of the state update that a command carries."""
    if isinstance(output, Hidden):
        update = output.inside.get("update") if isinstance(output.inside, dict) else None
        output = update.get("messages") if isinstance(update, dict) else None
    return [each for each in (output if isinstance(output, list) else [output]) if isinstance(each, PayloadMessage)]


def json_in(text: str) -> Any:
    """The object in a text that is JSON, fenced or not; None in any other text."""
    body = text.strip().removeprefix("```json").removeprefix("```").removesuffix("```").strip()
    try:
        return json.loads(body) if body.startswith(("{", "[")) else None
    except (ValueError, RecursionError):
        return None


def json_fields(text: str) -> list[str]:
    """The texts in a text that is JSON."""
    fields = texts_in(json_in(text)) if len(text) <= _MAX_JSON else ()
    return [field.strip() for field in islice(fields, MAX_FIELDS)]


def as_json(value: Snapshot) -> str | None:
    """A snapshot of an object as JSON text, without what is not data; None if nothing is left."""
    plain = _plain(value)
    return None if plain in (_NOTHING, {}, []) else json.dumps(plain, ensure_ascii=False)


_NOTHING = object()


def _plain(value: Snapshot) -> Any:
    if value is CUT:
        return "…"
    if isinstance(value, Call):
        return _plain(value.arguments)
    if isinstance(value, (Opaque, Document)):
        return _NOTHING
    if isinstance(value, PayloadMessage):
        return value.text
    if isinstance(value, dict):
        items = {key: _plain(item) for key, item in value.items()}
        return {key: item for key, item in items.items() if item is not _NOTHING}
    if isinstance(value, list):
        return [item for item in map(_plain, value) if item is not _NOTHING]
    return value


def texts_in(value: Snapshot) -> Iterator[str]:
    """Every text in a snapshot, also of documents and messages."""
    for _, leaf in leaves_in(value):
        if isinstance(leaf, str):
            yield leaf
        elif isinstance(leaf, (Document, PayloadMessage)):
            yield leaf.text


def leaves_in(value: Snapshot, name: str = "") -> Iterator[tuple[str, Snapshot]]:
    """What lists and dictionaries hold in the end, by the names of the fields."""
    if not isinstance(value, (dict, list)):
        yield name, value
        return
    for key, item in value.items() if isinstance(value, dict) else zip(repeat(name), value):
        if isinstance(item, (dict, list)):
            yield from leaves_in(item, key)
        else:
            yield key, item


def spoken_in(text: str) -> Iterator[tuple[str, Span]]:
    """The roles in a conversation that is written in a text, and where each of them speaks, up to the next one."""
    text = text[:_MAX_COMPARED]
    tagged = list(_tagged.finditer(text)) if "<message" in text else []
    for match in tagged:
        yield ROLES[match["role"].lower()], match.span("said")
    lines = [] if tagged else list(_line.finditer(f"\n{text}"))
    for match, after in zip_longest(lines, lines[1:]):
        end = len(text) if after is None else after.start()
        section = _next_section.search(text, match.end() - 1, end)
        yield ROLES[match["role"].lower()], (match.start(), end if section is None else section.start())


def normalise_spaces(text: str) -> str:
    """A text with one space between its words, to be compared with others; of a very long one the beginning."""
    return " ".join(text[:_MAX_COMPARED].split())
