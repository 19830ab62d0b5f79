"""The background that judges are shown: evidence that reached the model and is not a document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ragspan.records import Background, RagRecord, RetrievedContext
from ragspan.text.selection import select

MAX_SHOWN = 8_000
"""Characters of background that a judge gets."""


def shown_background(record: RagRecord, most: int = MAX_SHOWN) -> tuple[Background, ...]:
    """The record's background if it fits, else the parts that share the response's words, in prompt order."""
    texts = [one.text for one in record.background]
    return tuple(
        Background(kind=record.background[piece.text].kind, text=text)
        for piece in select(texts, record.response or "", most)
        if (text := texts[piece.text][piece.start : piece.end]).strip()
    )


def as_evidence(record: RagRecord, shown: Sequence[Background]) -> RagRecord:
    """The record as a judge reads it that knows contexts only: the background is among them, after the documents."""
    further = tuple(RetrievedContext(text=one.text) for one in shown)
    return replace(record, contexts=(*(record.contexts or ()), *further), background=())
