"""The contents of the payloads of a request's runs: documents, messages and calls of tools, and how they are read.

An integration's snapshots of its framework's payloads are made of these.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, repeat
from typing import Any, TypeAlias

from ragspan.safe_copy import CUT, Hidden, Opaque, Snapshot

MEDIA = frozenset({"image", "image_url", "audio", "input_audio", "video", "base64"})
"""Types of content blocks that hold no text."""
MAX_FIELDS = 1000  # of what a model wrote as JSON, that are read
_MAX_JSON = 100_000
_MAX_DEPTH = 6
_MAX_COMPARED = 200_000  # characters; splitting more would block other threads
_word = re.compile(r"[a-z]+")
_case = re.compile(r"(?<=[a-z])(?=[A-Z])")
ROLES = {
    "human": "human",
    "user": "human",
    "ai": "ai",
    "assistant": "ai",
    "system": "system",
    "developer": "system",
    "tool": "tool",
    "function": "tool",
}

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


ScoredDocuments: TypeAlias = list[tuple[Document, float | None]]
"""Documents, each with its score if it came with one."""


def documents_in(value: Snapshot) -> list[ScoredDocuments]:
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
    own: ScoredDocuments = [pair for item in value if (pair := scored_document(item)) is not None]
    if len(own) == len(value):
        return [own] if own else []
    others = [found for item in value if scored_document(item) is None for found in documents_in(item)]
    return [own, *others] if own else others


def scored_document(item: Snapshot) -> tuple[Document, float | None] | None:
    """A document, alone or as `(document, score)`."""
    if isinstance(item, Document):
        return item, None
    if isinstance(item, list) and len(item) == 2 and isinstance(item[0], Document):  # noqa: PLR2004  (document, score)
        return item[0], float(item[1]) if isinstance(item[1], (int, float)) else None
    return None


def tool_messages(output: Snapshot) -> list[PayloadMessage]:
    """The messages in a tool's output: itself, or those of the state update that a command carries."""
    if isinstance(output, Hidden):
        update = output.inside.get("update") if isinstance(output.inside, dict) else None
        output = update.get("messages") if isinstance(update, dict) else None
    return [each for each in (output if isinstance(output, list) else [output]) if isinstance(each, PayloadMessage)]


def documents_of_messages(
    messages: Sequence[Snapshot], known: set[tuple[int, ...]]
) -> tuple[list[ScoredDocuments], bool]:
    """The documents that a conversation's messages carry beside their text.

    Those of the user's last message and after it are of the current request; of earlier ones, which are history, it
    is only said whether there are any.

    Args:
        messages: the conversation.
        known: the identities of what is in lists that were given out before: an agent's prompts repeat all earlier ones,
            and these lists are left out then.
    """
    spoken = [message for message in messages if isinstance(message, PayloadMessage)]
    if all(message.artifact is None and message.documents is None for message in spoken):
        return [], False
    last = max((index for index, message in enumerate(spoken) if message.role == "human"), default=-1)
    earlier, current = spoken[: max(last, 0)], spoken[last + 1 :]
    found = documents_in(spoken[last].documents) if last >= 0 else []
    for artifact in [message.artifact for message in current if message.role == "tool"]:
        identities = tuple(map(id, artifact)) if isinstance(artifact, list) else ()
        if identities not in known and (lists := documents_in(artifact)):
            found += lists
            known |= {identities} - {()}
    return found, any(documents_in(message.artifact) for message in earlier if message.role == "tool")


def prompt_of(messages: Sequence[Snapshot], documents: Snapshot) -> list[PayloadMessage]:
    """A chat prompt, or a plain one, with all that it shows as text; some models get documents beside the messages."""
    prompt: list[PayloadMessage] = []
    for one in messages:
        if isinstance(one, str):
            prompt.append(PayloadMessage("human", one))
        elif isinstance(one, PayloadMessage):
            is_text = isinstance(one.content, str) and one.documents is None
            shown = (
                one if is_text else PayloadMessage(one.role, one.prompt_text, one.calls, one.call_id, unread=one.unread)
            )
            prompt.append(shown)
    return prompt if documents is None else [*prompt, PayloadMessage("system", "\n".join(texts_in(documents)))]


def is_conversation(inputs: Snapshot) -> bool:
    """Whether a payload is the state of a conversation, whose documents may be an earlier turn's."""
    lists = [value for value in inputs.values() if isinstance(value, list)] if isinstance(inputs, dict) else []
    return any(items and (isinstance(items[-1], PayloadMessage) or items[-1] is MESSAGE) for items in lists)


def json_in(text: str) -> Any:
    """The object in a text that is JSON, fenced or not; None in any other text."""
    body = text.strip().removeprefix("```json").removeprefix("```").removesuffix("```").strip()
    try:
        return json.loads(body) if body.startswith(("{", "[")) else None
    except (ValueError, RecursionError):
        return None


def json_fields(text: str) -> list[str]:
    """The texts in a text that is JSON."""
    if len(text) > _MAX_JSON or not text.lstrip().startswith(("{", "[", "```")):
        return []
    return [field.strip() for field in islice(texts_in(json_in(text)), MAX_FIELDS)]


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


def words_in_name(name: str) -> set[str]:
    """The words that the name of a field consists of."""
    return set(_word.findall(_case.sub("_", name).lower()))


def normalise_spaces(text: str) -> str:
    """A text with one space between its words, to be compared with others; of a very long one the beginning."""
    return " ".join(text[:_MAX_COMPARED].split())
