"""Contexts and background: the texts of a record that an answer may rest on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from itertools import accumulate
from typing import Any, Literal, TypeAlias

from ragspan.exceptions import ConfigurationError
from ragspan.record_json import context_fields, finite, plain_metadata
from ragspan.safe_copy import class_name, fields_of, given_items, text_of

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
            object.__setattr__(self, "score", finite(self.score))
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
    if issubclass(kind, (str, bytes)):
        raise ConfigurationError("contexts are a sequence of texts or documents, not a single string: write [text]")
    items = given_items(documents)
    if items is None:
        raise ConfigurationError(
            f"contexts are a list or tuple of texts or documents, not {class_name(kind)}: write list(...)"
        )
    return tuple(map(_context_of, items))


def _context_of(document: Any) -> RetrievedContext:
    kind = type(document)
    if kind is RetrievedContext:
        return document  # type: ignore[no-any-return]
    if issubclass(kind, RetrievedContext):  # the program's own
        own = fields_of(document)
        return RetrievedContext(**{one.name: own[one.name] for one in fields(RetrievedContext) if one.name in own})
    return RetrievedContext(**context_fields(document))


def make_plain(part: Any, *names: str) -> None:
    """Have no texts and no metadata of the program's own classes: what waits runs none of its code, and keeps nothing alive."""
    for name in names:
        text = getattr(part, name)
        if text is not None and type(text) is not str:
            object.__setattr__(part, name, text if (own := text_of(text)) is None else own)
    if type(part.metadata) is not dict or part.metadata:
        object.__setattr__(part, "metadata", plain_metadata(part.metadata))


def as_background(texts: Iterable[Any]) -> tuple[Background, ...]:
    """Texts as background: `Background`s, or strings, whose kind is `other`.

    Raises:
        ConfigurationError: one of them is neither, or `texts` is a single string.
    """
    made: list[Background] = []
    one: Any
    for one in [None] if (items := given_items(texts)) is None else items:
        text = text_of(one)
        if text is None and type(one) is not Background:
            raise ConfigurationError(
                "background is a sequence of texts and Backgrounds; of a single text, write [text]"
            )
        made.append(one if text is None else Background(text=text))
    return tuple(made)


def kept_background(background: tuple[Background, ...]) -> tuple[Background, ...]:
    """The beginning of background that a record keeps."""
    places = accumulate([len(one.text) for one in background], initial=0)
    cut = [replace(one, text=one.text[: max(MAX_BACKGROUND - at, 0)]) for one, at in zip(background, places)]  # noqa: B905
    return tuple(one for one in cut if one.text)
