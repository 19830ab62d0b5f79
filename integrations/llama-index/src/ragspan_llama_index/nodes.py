"""Takes snapshots of nodes, on the request path."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from ragspan.capturing import RequestLog
from ragspan.safe_copy import (
    fields_of,
    has_plain_dict,
    is_dict,
    is_list,
    items_of,
    kept_entries,
    number_of,
    small_entries,
    text_keyed,
    texts_among,
)
from ragspan.safe_copy import text_of as plain_text
from ragspan_llama_index.classes import facts_about, has_base

Template: TypeAlias = tuple[str, str, str, Sequence[str]]
"""How the framework writes a node for a model: the texts for all, for an entry of its metadata and between these, and the
names of the entries that are left out."""
NodeSnapshot: TypeAlias = tuple[int, Any, str | None, str, Mapping[str, Any], Template | None]
"""A node as it was: the identity of the object that goes from step to step, score, id, text and metadata; and, where its
text for the model is not known otherwise, its template."""
LaterText: TypeAlias = tuple[str, Template | None]
"""The text of a node when its request is over, and its template."""

MAX_PARTS: Final = 100
"""Of a result or of a list in it that are read."""


def nodes_in(items: Any, log: RequestLog, *, whole: bool = False) -> Sequence[NodeSnapshot]:
    """The nodes of a list as they are now, with or without scores: their identities, and their own texts.

    Args:
        items: a list of nodes; anything else holds none.
        log: of the request; it counts what was read.
        whole: with their templates, for nodes whose text for the model is not known otherwise.
    """
    kept, texts = log.kept, log.texts
    taken: list[NodeSnapshot] = []
    entries = 0
    kind_of_items = kind_of_nodes = items_are_plain = nodes_are_plain = None  # mostly all are of the same classes
    has_template = False
    for item in items if type(items) is list else (items_of(items) or ()) if is_list(items) else ():
        if type(item) is not kind_of_items:
            kind_of_items = type(item)
            items_are_plain = has_plain_dict(kind_of_items)
        if not items_are_plain or type(own := item.__dict__) is not dict:
            own = fields_of(item)
        try:  # mostly they are there, and asking whether they are takes longer
            node, score = own["node"], own["score"]
        except KeyError:
            node, score = own.get("node", item), own.get("score")
        if type(node) is not kind_of_nodes:
            kind_of_nodes = type(node)
            nodes_are_plain = has_plain_dict(kind_of_nodes)
            has_template = whole and has_base(kind_of_nodes, "BaseNode")
        if not nodes_are_plain or type(fields := node.__dict__) is not dict:
            fields = fields_of(node)
        try:
            text, name, given = fields["text"], fields["id_"], fields["metadata"]
        except KeyError:
            text, name, given = fields.get("text"), fields.get("id_"), fields.get("metadata")
        if type(text) is not str:
            text = _text_in(text, fields)
        name = name if type(name) is str else plain_text(name)
        score = score if type(score) is float or score is None else number_of(score)
        metadata = small_entries(given)
        if metadata is None:
            metadata = kept_entries(given, nested=True, texts=texts)
        identity = id(item)
        kept[identity] = item, text
        texts[id(text)] = text
        entries += len(metadata)
        taken.append((identity, score, name, text, metadata, _template_of(fields) if has_template else None))
    log.parts += 6 * len(taken) + 3 * entries
    return taken


def later_texts(log: RequestLog) -> Mapping[int, LaterText]:
    """What became of all nodes that were read, by the identities of their objects. What else they hold is not read again."""
    taken: dict[int, LaterText] = {}
    kind, has_template = None, False
    for identity, (item, text) in list(log.kept.items()):
        if type(text) is not str:  # it is not a node
            continue
        node = fields_of(item).get("node", item)
        fields = fields_of(node)
        own = fields.get("text")
        if type(own) is not str:
            own = _text_in(own, fields)
        if own is not text:
            log.texts[id(own)] = own
        if type(node) is not kind:
            kind = type(node)
            has_template = has_base(kind, "BaseNode")
        taken[identity] = own, _template_of(fields) if has_template else None
    log.parts += 6 * len(taken)
    return taken


def _text_in(given: Any, fields: Mapping[str, Any]) -> str:
    return plain_text(given) or plain_text(fields_of(fields.get("text_resource")).get("text")) or ""


def _template_of(fields: Mapping[str, Any]) -> Template | None:
    try:
        whole, entry, names = fields["text_template"], fields["metadata_template"], fields["excluded_llm_metadata_keys"]
        between = fields["metadata_separator"]
    except KeyError:
        whole, entry = fields.get("text_template"), fields.get("metadata_template")
        names = fields.get("excluded_llm_metadata_keys")
        between = fields.get("metadata_separator", fields.get("metadata_seperator"))  # so it was spelt once
    if type(whole) is not str or type(entry) is not str or type(between) is not str:
        whole, entry, between = plain_text(whole), plain_text(entry), plain_text(between)
        if whole is None or entry is None or between is None:
            return None
    is_none = type(names) is list and not names  # as mostly
    return whole, entry, between, () if is_none else texts_among(items_of(names) or ())


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
    if not is_list(items):
        return False
    nodes = items_of(items) or ()
    return bool(nodes) and all(
        not facts_about(type(item)).bases.isdisjoint({"NodeWithScore", "BaseNode"}) for item in nodes
    )


def nodes_among(value: Any, depth: int = 2) -> Sequence[Any]:
    """The nodes in what a tool returned: the value itself, or in lists and dictionaries not too deep."""
    if are_nodes(value):
        return items_of(value) or []
    inside = list(text_keyed(value).values()) if is_dict(value) else items_of(value) if is_list(value) else None
    if inside is None:
        return [value] if are_nodes([value]) else []
    return [node for item in inside[: MAX_PARTS if depth else 0] for node in nodes_among(item, depth - 1)]
