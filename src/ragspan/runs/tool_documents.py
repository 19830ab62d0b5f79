"""The documents in the result of a tool that the user named as a search (`RAGSPAN_RETRIEVAL_TOOLS`), an MCP server's too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ragspan import field_names
from ragspan.capturing.snapshots import Snapshot
from ragspan.runs.contents import Document, Found, PayloadMessage, content_text, documents_in, json_in, tool_messages
from ragspan.runs.tree import RequestTree, SearchStep, ToolStep

_MAX_DOCUMENTS = 1000
_MAX_DEPTH = 6


def add_search(tree: RequestTree, tool: ToolStep, ended_ns: int, output: Snapshot) -> None:
    """Add the search that a tool with this result is: a step inside it, which found the documents there."""
    given = tool.inputs.values() if isinstance(tool.inputs, dict) else [tool.inputs]
    query = next((text for text in given if isinstance(text, str)), None)
    search = tree.begin(SearchStep(name=tool.name, parent=tool, started_ns=tool.started_ns, inputs=query))
    tree.end(search, ended_ns, [[document, score] for document, score in documents_of_result(output)])


def documents_of_result(output: Snapshot) -> Found:
    """The documents that a tool returned: as such, as JSON, or as texts, each of which is one."""
    messages = tool_messages(output)
    shown = [each.artifact for each in messages] + [output]
    found = [pair for value in shown for some in documents_in(value) for pair in some]
    texts = [_parts_of(each) for each in messages] if messages else [[output]]
    return (found or [pair for parts in texts for part in parts for pair in _read(part)])[:_MAX_DOCUMENTS]


def _parts_of(message: PayloadMessage) -> list[Any]:
    """The text of a message, or those of its blocks, as MCP's tools give several."""
    return (
        [message.content] if isinstance(message.content, str) else [content_text([block]) for block in message.content]
    )


def _read(value: Any, depth: int = 0) -> Iterator[tuple[Document, float | None]]:
    data = json_in(value) if isinstance(value, str) else value
    if isinstance(data, list):
        for item in data:
            yield from _read(item, depth + 1) if depth < _MAX_DEPTH else ()
    elif isinstance(data, Mapping):
        text = next((data[key] for key in field_names.TEXT if isinstance(data.get(key), str)), None)
        lists = [item for item in data.values() if isinstance(item, list)]
        if text is not None:
            yield _document(text, data)
        elif lists:
            for item in lists:
                yield from _read(item, depth + 1) if depth < _MAX_DEPTH else ()
        elif data and isinstance(value, str):
            yield Document(value, None, {}), None
    elif isinstance(value, str) and value.strip():
        yield Document(value, None, {}), None


def _document(text: str, data: Mapping[str, Any]) -> tuple[Document, float | None]:
    def first(keys: tuple[str, ...]) -> Any:
        return next((data[key] for key in keys if data.get(key) is not None), None)

    own_id, score, about = first(field_names.ID), first(field_names.SCORE), first(field_names.METADATA)
    sources = {key: data[key] for key in field_names.SOURCE if isinstance(data.get(key), str)}
    metadata = {**sources, **(about if isinstance(about, Mapping) else {})}
    is_number = isinstance(score, (int, float)) and not isinstance(score, bool)
    return Document(text, None if own_id is None else str(own_id), metadata), float(score) if is_number else None
