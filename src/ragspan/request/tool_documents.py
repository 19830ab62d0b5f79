"""The documents in the result of a tool that the user named as a search (`RAGSPAN_RETRIEVAL_TOOLS`), an MCP server's too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ragspan import field_names
from ragspan.request.contents import (
    Document,
    Found,
    PayloadMessage,
    as_json,
    content_text,
    documents_in,
    json_in,
    tool_messages,
)
from ragspan.request.tree import RequestTree, SearchStep, Step, ToolStep
from ragspan.safe_copy import Snapshot

_MAX_DOCUMENTS = 1000
_MAX_DEPTH = 6


def add_searches(tree: RequestTree) -> None:
    """Add the searches that tools are which the user named so: each is a step inside the tool, and found what that returned."""
    moments: list[tuple[Step, bool]] = []
    added: dict[Step, SearchStep] = {}
    for step, is_over in tree.moments:
        is_named = is_over and isinstance(step, ToolStep) and step.name in tree.retrieval_tools
        if is_named and step.noted is None and not any(each.failed for each in tool_messages(step.output)):
            search = added[step] = SearchStep(
                name=step.name,
                parent=step,
                started_ns=step.started_ns,
                ended_ns=step.ended_ns,
                inputs=searched_with(step),
                output=[[document, score] for document, score in documents_of_result(step.output)],
            )
            moments += [(search, False), (search, True)]
        moments.append((step, is_over))
    tree.moments = moments
    tree.steps = [one for step in tree.steps for one in (step, added.get(step)) if one is not None]


def searched_with(tool: Step) -> str | None:
    """What a tool that is a search was asked."""
    given = tool.inputs.values() if isinstance(tool.inputs, dict) else [tool.inputs]
    return next((text for text in given if isinstance(text, str)), None)


def documents_of_result(output: Snapshot) -> Found:
    """The documents that a tool returned: as such, as JSON, or as texts, each of which is one; rows of a table if nothing has a text."""
    messages = tool_messages(output)
    shown = [each.artifact for each in messages] + [output]
    found = [pair for value in shown for some in documents_in(value) for pair in some]
    texts = [_parts_of(each) for each in messages] if messages else [[output]]
    found = found or [pair for parts in texts for part in parts for pair in _read(part)]
    rows = () if found else (row for parts in texts for part in parts for row in _rows(part))
    return (found or [(Document(text, None, {}), None) for row in rows if (text := as_json(row))])[:_MAX_DOCUMENTS]


def _parts_of(message: PayloadMessage) -> list[Any]:
    """The text of a message, or those of its blocks, as MCP's tools give several."""
    return (
        [message.content] if isinstance(message.content, str) else [content_text([block]) for block in message.content]
    )


def _rows(value: Any, depth: int = 0) -> Iterator[Mapping[str, Any]]:
    data = json_in(value) if isinstance(value, str) else value
    for item in data if isinstance(data, list) else data.values() if isinstance(data, Mapping) else ():
        if isinstance(item, Mapping) and isinstance(data, list):
            yield item
        elif isinstance(item, (list, Mapping)) and depth < _MAX_DEPTH:
            yield from _rows(item, depth + 1)


def _read(value: Any, depth: int = 0) -> Iterator[tuple[Document, float | None]]:
    data = json_in(value) if isinstance(value, str) else value
    if isinstance(data, list):
        for item in data:
            yield from _read(item, depth + 1) if depth < _MAX_DEPTH else ()
    elif isinstance(data, Mapping):
        about = _first(data, field_names.METADATA)
        holders = [data, about] if isinstance(about, Mapping) else [data]
        text = next((own[key] for own in holders for key in field_names.TEXT if isinstance(own.get(key), str)), None)
        found = [_document(text, data)] if text is not None else list(_inside(data, depth))
        yield from found
        whole = value if isinstance(value, str) else None if depth else as_json(value)
        if not found and data and whole and not any(isinstance(item, list) for item in data.values()):
            yield Document(whole, None, {}), None
    elif isinstance(value, str) and value.strip():
        yield Document(value, None, {}), None


def _inside(data: Mapping[str, Any], depth: int) -> Iterator[tuple[Document, float | None]]:
    """The documents in the lists of a result, or deeper: by its name if one is of documents, as beside columns of their ids."""
    lists = {key: item for key, item in data.items() if isinstance(item, list)}
    named = [lists[key] for key in field_names.CONTEXTS if key in lists]
    deeper = [item for item in data.values() if isinstance(item, Mapping)]
    for item in (named or lists.values() or deeper) if depth < _MAX_DEPTH else ():
        yield from _read(item, depth + 1)


def _first(data: Mapping[str, Any], keys: tuple[str, ...]) -> Any:
    return next((data[key] for key in keys if data.get(key) is not None), None)


def _document(text: str, data: Mapping[str, Any]) -> tuple[Document, float | None]:
    own_id, score, about = (_first(data, keys) for keys in (field_names.ID, field_names.SCORE, field_names.METADATA))
    sources = {key: data[key] for key in field_names.SOURCE if isinstance(data.get(key), str)}
    metadata = {**sources, **(about if isinstance(about, Mapping) else {})}
    is_number = isinstance(score, (int, float)) and not isinstance(score, bool)
    return Document(text, None if own_id is None else str(own_id), metadata), float(score) if is_number else None
