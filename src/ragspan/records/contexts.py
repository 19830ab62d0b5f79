"""Contexts and background: the texts of a record that an answer may rest on."""

from __future__ import annotations

import math
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, TypeAlias

from ragspan import field_names
from ragspan.exceptions import ConfigurationError
from ragspan.record_json import plain
from ragspan.safe_copy import (
    class_name,
    dict_in,
    fields_of,
    given_items,
    is_dict,
    kept_entries,
    number_of,
    plain_scalar,
    text_keyed,
    text_of,
)

BackgroundKind: TypeAlias = Literal["metadata", "tool", "history", "other"]
MAX_BACKGROUND = 60_000
"""Characters of background that a record keeps."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RetrievedContext:
    """A document that reached the model in its prompt, or that a search found."""

    text: str
    """In a record's contexts what the prompt held of it, in its own spelling; in a search's results its whole text."""
    id: str | None = None
    rank: int | None = None
    """0-based place in the result of the first search that found it; None if no ranked result has it."""
    score: float | None = None
    """The retriever's own score, with its range and direction. A value that is not a finite number becomes None."""
    source: str | None = None
    """The origin of the text: a file, a URL, a title."""
    truncated: bool = False
    """The document has more text than the prompt held."""
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.score is not None:  # the retriever's library may have its own numbers
            number = number_of(self.score)
            object.__setattr__(self, "score", None if number is None or not math.isfinite(number) else float(number))
        make_plain(self, "text", "id", "source")


@dataclass(frozen=True, kw_only=True, slots=True)
class Background:
    """Evidence in a prompt that is not a document."""

    text: str
    kind: BackgroundKind = "other"
    """`metadata`: what stood beside documents. `tool`: the result of a tool that is not a search. `history`: documents and
    results of tools of earlier turns. `other`: what else the program wrote, such as memories or a date."""


def as_contexts(documents: Iterable[Any]) -> tuple[RetrievedContext, ...]:
    """Documents as contexts.

    A document may be a `RetrievedContext`, a string, a node of LlamaIndex, an object that keeps its text in a plain attribute
    `page_content` (LangChain) or `text`, or a dictionary with one under `text`, `page_content` or `content`, which may also
    have an `id`, `source`, `score`, `rank` and `metadata`. No code of the objects' classes runs, so properties are not read.

    Args:
        documents: a list, tuple, set or deque, or a generator.

    Raises:
        ConfigurationError: one of `documents` has no text, or `documents` is a single string or of another kind.
    """
    kind = type(documents)
    if kind is tuple and all(type(one) is RetrievedContext for one in documents):
        return documents  # type: ignore[return-value]
    items = given_items(documents)
    if items is None:
        said = "a single string: write [text]" if kind is str else f"{class_name(kind)}: write list(...)"
        raise ConfigurationError(f"contexts are a list or tuple of texts or documents, not {said}")
    return tuple(map(_context_of, items))


def _context_of(document: Any) -> RetrievedContext:
    kind = type(document)
    if kind is RetrievedContext:
        return document  # type: ignore[no-any-return]
    if issubclass(kind, RetrievedContext):  # the program's own
        own = fields_of(document)
        return RetrievedContext(**{one.name: own[one.name] for one in fields(RetrievedContext) if one.name in own})
    text = text_of(document)
    if text is not None:
        return RetrievedContext(text=text)
    own = text_keyed(document) if is_dict(document) else fields_of(document)
    names = field_names.TEXT if is_dict(document) else ("page_content", "text")
    node = fields_of(own["node"]) if "node" in own and not is_dict(document) else own  # a node with a score
    texts = (*map(node.get, names), fields_of(node.get("text_resource")).get("text"))
    text = next((text for one in texts if (text := text_of(one)) is not None), None)
    if text is None:
        raise ConfigurationError(
            f"a context is a text, or has one under one of {', '.join(names)}; this {class_name(kind)} has none"
        )
    rank = own.get("rank")
    return RetrievedContext(
        text=text,
        id=identifier(map(node.get, field_names.ID)),
        rank=rank if type(rank) is int and rank >= 0 else None,
        score=number_of(own.get("score")),
        source=identifier(map(own.get, field_names.SOURCE)) if is_dict(document) else None,
        metadata=kept_entries(next((node[key] for key in field_names.METADATA if node.get(key) is not None), None)),
    )


def identifier(candidates: Iterable[Any]) -> str | None:
    """The first that identifies something: a number, a UUID, a text that is not blank."""
    texts = (str(plain_scalar(one)) for one in candidates if issubclass(type(one), (str, int, uuid.UUID)))
    return next((name for name in texts if name.strip()), None)


def make_plain(part: Any, *names: str) -> None:
    """Have no texts and no metadata of the program's own classes: what waits runs none of its code, and keeps nothing alive."""
    for name in names:
        text = getattr(part, name)
        if text is not None and type(text) is not str and (own := text_of(text)) is not None:
            object.__setattr__(part, name, own)
    if type(part.metadata) is not dict or part.metadata:
        object.__setattr__(part, "metadata", plain(dict_in(part.metadata) or {}))


def as_background(texts: Iterable[Any]) -> tuple[Background, ...]:
    """Texts as background: `Background`s, or strings, whose kind is `other`.

    Raises:
        ConfigurationError: one of them is neither, or `texts` is a single string.
    """
    items = given_items(texts)
    if items is None or any(text_of(one) is None and type(one) is not Background for one in items):
        raise ConfigurationError("background is a sequence of texts and Backgrounds; of a single text, write [text]")
    return tuple(one if text is None else Background(text=text) for one in items for text in [text_of(one)])
