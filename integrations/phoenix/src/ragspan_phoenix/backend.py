"""Writes annotations to a Phoenix server, by its REST API.

Phoenix's asynchronous mode is not used: it answers 200 and keeps what it was sent in memory, from where it is lost with a
restart, or when the span takes more than ten minutes. With `sync=true` it writes a batch as a whole or not at all, and names
the spans that are not there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from ragspan.delivery import Annotation, Delivered, Rejected, SpanNotFound, Unavailable, WriteResult
from ragspan.delivery.http import HttpClient, Reply
from ragspan.delivery.writer import present
from ragspan.telemetry.values import named

_SPAN_ID = re.compile(r"\b[0-9a-f]{16}\b")
_OUT_OF_BOUNDS = re.compile(r"out of bounds for span ([0-9a-f]{16}) \(max: (-?\d+)\)")
_NOT_FOUND, _UNPROCESSABLE = 404, 422

_Numbered: TypeAlias = Mapping[int, Annotation]


class PhoenixServer:
    """A connection to Phoenix.

    Args:
        client: of the server; closed with this.
        identifier: what the annotations' identifiers begin with.
    """

    def __init__(self, client: HttpClient, *, identifier: str) -> None:
        self._client = client
        self._identifier = identifier

    def write(self, batch: Sequence[Annotation]) -> list[WriteResult]:
        """Write the batch, annotations of spans and of documents by requests of their own."""
        results: dict[int, WriteResult] = {}
        for is_of_document, path in ((False, "/v1/span_annotations"), (True, "/v1/document_annotations")):
            left = {n: item for n, item in enumerate(batch) if (item.position is not None) == is_of_document}
            while left:
                found = self._write(path, left)
                results |= found
                left = {number: item for number, item in left.items() if number not in found}
        return [results[number] for number in range(len(batch))]

    def close(self) -> None:
        self._client.close()

    def _write(self, path: str, items: _Numbered) -> Mapping[int, WriteResult]:
        """What became of at least one of the items; Phoenix has written all of them or none."""
        rows = [row_of(item, self._identifier) for item in items.values()]
        body = json.dumps({"data": rows}, separators=(",", ":"), allow_nan=False).encode()
        reply = self._client.call("POST", path, query={"sync": "true"}, data=body)
        if reply.is_ok:
            written = reply.body.get("data")
            if not isinstance(written, list) or len(written) != len(items):
                raise Unavailable("not_phoenix")  # another server's greeting
            return dict.fromkeys(items, Delivered())
        if found := _missing(reply, items) or _outside(reply, items):
            return found
        raise reply.failure()


def row_of(item: Annotation, identifier: str) -> dict[str, Any]:
    """The annotation as Phoenix takes it. It replaces a row with the same span, name, identifier and position.

    The identifier is the record's: two answers under one span keep their scores apart. Documents have none, so one name
    stands once on a document.
    """
    result = {"score": item.value, "label": item.label, "explanation": item.explanation}
    row: dict[str, Any] = {
        "span_id": item.span_id,
        "name": item.name,
        "annotator_kind": item.annotator,
        "identifier": named(f"{identifier}:{item.record_id}") if item.position is None else "",
        "result": {"label": "error"} if item.error_type is not None else present(result),
        "metadata": item.metadata,
    }
    return row if item.position is None else row | {"document_position": item.position}


def _missing(reply: Reply, items: _Numbered) -> dict[int, WriteResult]:
    """The items whose spans Phoenix says it does not have."""
    spans = set(_SPAN_ID.findall(reply.text)) if reply.status == _NOT_FOUND else set()
    return {number: SpanNotFound() for number, item in items.items() if item.span_id in spans}


def _outside(reply: Reply, items: _Numbered) -> dict[int, WriteResult]:
    """The items for documents that the span does not have: its attributes do not say so, or not of so many."""
    named_span = _OUT_OF_BOUNDS.search(reply.text) if reply.status == _UNPROCESSABLE else None
    if named_span is None:
        return {}
    span_id, last = named_span[1], int(named_span[2])
    return {
        number: Rejected("no_such_document")
        for number, item in items.items()
        if item.span_id == span_id and item.position is not None and item.position > last
    }
