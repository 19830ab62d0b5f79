"""Texts in the metadata of documents that may stand in a prompt in their place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import islice

from ragspan.request.contents import Document
from ragspan.request.tree import SeenDocument

_MAX_FIELDS = 1000
_MAX_ENTRIES = 50
_LOOKED_AT = 500
_MIN_WORDS = 8
"""A text of the metadata needs this many: a title or an address is not a document."""


def windows(documents: Sequence[SeenDocument]) -> list[SeenDocument]:
    """Texts that contain a document's own: in its metadata the sentences around it, the page that it is of; what a framework writes."""
    return [
        _beside(entry, text)
        for entry in documents
        for text in (entry.document.written, *islice(entry.document.metadata.values(), _MAX_ENTRIES))
        if type(text) is str and len(text) > len(entry.text) > 0 and entry.text.strip() in text
    ][:_MAX_FIELDS]


def _beside(entry: SeenDocument, text: str) -> SeenDocument:
    document = Document(text, entry.document.id, entry.document.metadata)
    return SeenDocument(document, entry.rank, entry.score, entry.from_history, is_beside=True)


def texts_beside(documents: Sequence[SeenDocument]) -> list[SeenDocument]:
    """What documents hold beside their own text, as documents: an index of summaries or questions has the passages there.

    A text that several have says something of their source.
    """
    texts = (
        _beside(entry, text)
        for entry in documents
        for text in islice(entry.document.metadata.values(), _MAX_ENTRIES)
        if type(text) is str and len(text[:_LOOKED_AT].split()) >= _MIN_WORDS
    )
    beside = list(islice(texts, _MAX_FIELDS))
    times = Counter(entry.text for entry in beside)
    return [entry for entry in beside if times[entry.text] == 1]
