"""Nodes as they were at the moment that counts; programs and postprocessors change them in place afterwards."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

from ragspan_llama_index.roles import has_base


class SeenNode:
    """A node that passed by: its identity, score and own text, and while it may be needed the node, later a copy."""

    __slots__ = ("frozen", "id", "item", "metadata", "node", "score", "text")

    def __init__(self, item: Any, node: Any, score: float | None) -> None:
        self.item = item  # the node with its score, which goes from step to step as it is
        self.node = node
        self.score = score
        self.frozen = False
        try:
            self.id: str | None = node.id_
            self.metadata: Mapping[str, Any] = node.metadata.copy()
            self.text: str = node.text
        except AttributeError:
            self.id = getattr(node, "id_", None)
            self.metadata = dict(getattr(node, "metadata", None) or ())
            self.text = _own_text(node)

    def freeze(self) -> None:
        """Keep a copy in place of the node, which is the program's."""
        node = self.node
        if self.frozen or node is None:
            return
        self.frozen = True
        self.node = None
        self.text = _own_text(node)
        with contextlib.suppress(Exception):  # a program's own node class: then its plain text has to do
            self.metadata = dict(node.metadata)
            self.node = node.model_copy(update={"metadata": self.metadata, "embedding": None})

    def describes_tool(self) -> bool:
        """Whether it stands for a tool among which an agent chooses, and is no context."""
        return self.text.startswith(f"Tool name: {self.metadata.get('name')}\nTool description: ")

    def text_for_model(self) -> str:
        """The text with metadata and template, as the framework writes it into prompts; in the worker, once frozen."""
        if self.node is None:
            return self.text
        from llama_index.core.schema import MetadataMode

        try:
            return str(self.node.get_content(metadata_mode=MetadataMode.LLM))
        except Exception:  # noqa: BLE001  a program's own node class, or its broken template
            return self.text


def seen(items: Any) -> Sequence[SeenNode]:
    """The nodes of a list as they are now, with or without scores."""
    if not isinstance(items, (list, tuple)):
        return ()
    try:
        return [SeenNode(item, item.node, item.score) for item in items]
    except AttributeError:
        return [SeenNode(item, getattr(item, "node", item), getattr(item, "score", None)) for item in items]


def are_nodes(items: Any) -> bool:
    """Whether this is a list of nodes, with or without scores."""
    if not isinstance(items, (list, tuple)) or not items:
        return False
    return all(has_base(type(item), "NodeWithScore") or has_base(type(item), "BaseNode") for item in items)


def _own_text(node: Any) -> str:
    """The text of a node without its metadata; a string that exists already, not a new one."""
    text = getattr(node, "text", None)
    if not isinstance(text, str):
        text = getattr(getattr(node, "text_resource", None), "text", None)
    return text if isinstance(text, str) else ""
