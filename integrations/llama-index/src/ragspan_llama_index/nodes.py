"""Reads nodes as documents, on the request path: each object once, and again where its text has changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter, itemgetter
from typing import Any, TypeAlias

from ragspan.capturing import RequestLog
from ragspan.request import Document
from ragspan.safe_copy import (
    fields_of,
    has_plain_dict,
    is_dict,
    is_list,
    items_of,
    kept_entries,
    number_of,
    small_copies,
    text_keyed,
    texts_among,
)
from ragspan.safe_copy import text_of as plain_text
from ragspan_llama_index.classes import facts_about, has_base

Template: TypeAlias = tuple[str, str, str, Sequence[str]]
"""How the framework writes a node for a model: the texts for all, for an entry of its metadata and between these, and the
names of the entries that are left out."""

_MAX_PARTS = 100  # of a tool's result, or of a list in it, that are searched for nodes


def documents_of(items: Any, log: RequestLog, *, again: bool = False) -> list[Any]:
    """The nodes of a list, each as a document and its score: one document for each node and text.

    Args:
        items: a list of nodes, with or without scores; anything else holds none.
        log: of the request; it knows the nodes that were read before, and counts what was read.
        again: nodes that were read before are as they were, as far as it matters.
    """
    kept = log.kept
    if again:
        try:
            return list(map(_second, map(kept.get, map(id, items))))
        except TypeError:  # some are new, or it is not a list
            pass
    read = items if type(items) is list else items_of(items) if is_list(items) else None
    if not read:
        return []
    plain = _plain_documents_of(read, log)
    if plain:
        return plain
    pairs = []
    for item in read:
        own = fields_of(item)
        node, score = own.get("node", item), own.get("score")
        fields = fields_of(node)
        text = _text_in(fields)
        known = kept.get(id(node))
        if known is None or known[1].text != text:
            log.texts[id(text)] = text
            metadata = kept_entries(fields.get("metadata"), nested=True, texts=log.texts)
            log.parts += 4 + 3 * len(metadata)
            known = kept[id(node)] = node, Document(text, plain_text(fields.get("id_")), metadata)
        pair = [known[1], score if score is None else number_of(score)]
        if item is not node:
            kept[id(item)] = item, pair
        log.parts += 4
        pairs.append(pair)
    return pairs


def _plain_documents_of(items: list[Any], log: RequestLog) -> list[Any] | None:
    """The same of nodes of the framework's own classes that were not read before, in loops of C; None of any others."""
    kept = log.kept
    if not _are_alike(items):
        return None
    try:
        nodes, scores = zip(*map(itemgetter("node", "score"), map(_fields, items)), strict=True)
        if not _are_alike(nodes):
            return None
        texts, names, metadata = zip(*map(itemgetter("text", "id_", "metadata"), map(_fields, nodes)), strict=True)
    except (KeyError, TypeError):
        return None
    kinds = {*map(id, map(type, texts)), *map(id, map(type, names)), *map(id, map(type, scores))}
    small: Any = small_copies(metadata)
    if small is None or not kinds <= _PLAIN or any(map(kept.get, map(id, nodes))):
        return None
    documents = list(map(Document, texts, names, small))
    pairs = list(map(list, zip(documents, scores, strict=True)))
    kept.update(zip(map(id, nodes), zip(nodes, documents, strict=True), strict=True))
    kept.update(zip(map(id, items), zip(items, pairs, strict=True), strict=True))
    log.texts.update(zip(map(id, texts), texts, strict=True))
    log.parts += 8 * len(pairs) + 3 * sum(map(len, small))
    return pairs


def _are_alike(objects: Sequence[Any]) -> bool:
    """Whether they are all of one class that keeps its fields in their dictionaries."""
    return len({*map(id, map(type, objects))}) == 1 and has_plain_dict(type(objects[0]))


_fields: Callable[[Any], Any] = attrgetter("__dict__")
_PLAIN = frozenset(map(id, (str, float, type(None))))
_second: Callable[[Any], Any] = itemgetter(1)


def documents_now(log: RequestLog) -> list[tuple[Document, str, Template | None]]:
    """The nodes that were read as they are at the end of the request, each with its text and template."""
    taken = []
    for node, document in list(log.kept.values()):
        if type(document) is Document:
            fields = fields_of(node)
            text = _text_in(fields)
            if text is not document.text:
                log.texts[id(text)] = text
            template: Template | None = None
            whole, entry = plain_text(fields.get("text_template")), plain_text(fields.get("metadata_template"))
            between = plain_text(fields.get("metadata_separator", fields.get("metadata_seperator")))  # once spelt so
            if whole is not None and entry is not None and between is not None and has_base(type(node), "BaseNode"):
                left_out = texts_among(items_of(fields.get("excluded_llm_metadata_keys")) or ())
                template = whole, entry, between, left_out
            taken.append((document, text, template))
    return taken


def _text_in(fields: Mapping[str, Any]) -> str:
    return plain_text(fields.get("text")) or plain_text(fields_of(fields.get("text_resource")).get("text")) or ""


def text_shown(text: str, metadata: Mapping[str, Any], template: Template) -> str | None:
    """The text of such a node with metadata and template, as the framework's own nodes are written into prompts; for the worker."""
    whole, entry, between, left_out = template
    try:
        shown = between.join(
            entry.format(key=key, value=str(value)) for key, value in metadata.items() if key not in left_out
        ).strip()
        return whole.format(content=text, metadata_str=shown).strip() if shown else text
    except (LookupError, ValueError, AttributeError, TypeError):  # a broken template
        return None


def are_nodes(items: Any) -> bool:
    """Whether this is a list of nodes, with or without scores."""
    nodes = items_of(items) if is_list(items) else None
    return bool(nodes) and all(
        not facts_about(type(item)).bases.isdisjoint({"NodeWithScore", "BaseNode"}) for item in nodes or ()
    )


def nodes_among(value: Any, depth: int = 2) -> Sequence[Any]:
    """The nodes in what a tool returned: the value itself, or in lists and dictionaries not too deep."""
    if are_nodes(value):
        return items_of(value) or []
    inside = list(text_keyed(value).values()) if is_dict(value) else items_of(value) if is_list(value) else None
    if inside is None:
        return [value] if are_nodes([value]) else []
    return [node for item in inside[: _MAX_PARTS if depth else 0] for node in nodes_among(item, depth - 1)]
