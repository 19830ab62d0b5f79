"""Turns nodes into the contexts of a record."""

from __future__ import annotations

from collections.abc import Mapping

from ragspan.records import RetrievedContext, plain_entries
from ragspan_llama_index.roles import SEARCH
from ragspan_llama_index.steps import SeenNode, Step

_SOURCES = ("source", "file_name", "file_path", "url", "title")


def as_context(node: SeenNode, text: str, *, rank: int | None, truncated: bool = False) -> RetrievedContext:
    named = (node.metadata.get(name) for name in _SOURCES)
    return RetrievedContext(
        text=text,
        id=node.id,
        rank=rank,
        score=node.score,
        source=next((source for source in named if isinstance(source, str) and source), None),
        truncated=truncated,
        metadata=plain_entries(node.metadata),
    )


def ranks_in(root: Step) -> Mapping[str | None, int]:
    """By a node's id, its place in the result of the first search that brought it."""
    ranks: dict[str | None, int] = {}
    for step in root.walk():
        if step.role is SEARCH:
            for place, node in enumerate(step.found or ()):
                ranks.setdefault(node.id, place)
    ranks.pop(None, None)
    return ranks
