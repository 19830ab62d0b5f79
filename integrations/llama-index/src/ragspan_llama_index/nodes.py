"""Reads nodes as documents, on the request path: each object once, and again where its text has changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    small_copy,
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
        again: the nodes of a list that was read before are as they were, as far as it matters.
    """
    kept, texts = log.kept, log.texts
    read = list(items) if type(items) is list else items_of(items) if is_list(items) else None
    if not read:
        return []
    identities = tuple(map(id, read))
    if again and identities in kept:
        return kept[identities][1]  # type: ignore[no-any-return]  # a list is known by its pairs
    pairs: list[list[Any]] = []
    entries = 0
    plain = None  # the class of most nodes
    for node, score in _scored_nodes(read):
        if type(node) is plain:
            fields = node.__dict__
        else:
            fields = fields_of(node)
            plain = type(node) if has_plain_dict(type(node)) else None
        try:
            text, name = fields["text"], fields["id_"]
            metadata = fields["metadata"]
        except KeyError:
            text, name, metadata = fields.get("text"), fields.get("id_"), fields.get("metadata")
        if type(text) is not str or type(name) is not str:
            text, name = _text_in(fields), plain_text(name)
        identity = id(node)
        if identity in kept and kept[identity][1].text == text:
            document = kept[identity][1]
        else:
            texts[id(text)] = text
            copy = small_copy(metadata) or kept_entries(metadata, nested=True, texts=texts)
            entries += len(copy)
            document = Document(text, name, copy)
            kept[identity] = node, document
        pairs.append([document, score if type(score) is float or score is None else number_of(score)])
    kept[identities] = read, pairs
    log.parts += 8 * len(pairs) + 3 * entries
    return pairs


def _scored_nodes(items: list[Any]) -> list[tuple[Any, Any]]:
    """The nodes of a list, each with its score, if it came with one."""
    if all(map(has_plain_dict, set(map(type, items)))):
        try:
            return list(map(_NODE_AND_SCORE, map(_DICTIONARY, items)))
        except KeyError:  # nodes without scores
            pass
    owns = map(fields_of, items)
    return [(own.get("node", item), own.get("score")) for item, own in zip(items, owns, strict=True)]


_DICTIONARY, _NODE_AND_SCORE = attrgetter("__dict__"), itemgetter("node", "score")


def documents_now(log: RequestLog) -> list[tuple[Document, str, Template | None]]:
    """The nodes that were read as they are at the end of the request, each with its text and template."""
    taken = []
    for node, document in list(log.kept.values()):
        if type(document) is Document:
            fields = fields_of(node)
            text = _text_in(fields)
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
