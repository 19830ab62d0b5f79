"""Reads traces that Phoenix has stored, and what people said of them, by its REST API."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any
from urllib.parse import quote

from ragspan.evaluate.sources import ReplyTooLarge, StoredAnswer, StoredScore, asked, nanoseconds_of
from ragspan.tools.http import HttpClient
from ragspan.tools.phoenix import phoenix_server
from ragspan_receiver.spans import SpanEvent, TracedSpan
from ragspan_receiver.stored import answers_in

_KIND = "openinference.span.kind"
_UNKNOWN = "UNKNOWN"  # Phoenix's word for a span that names no kind
_TRACES = "50"  # of a page
_ROWS = "1000"  # spans or annotations of a page
_PATIENCE = 60.0  # seconds: pages are large
_IDS = 150  # of spans in one address: proxies allow 8 kB


def stored(project: str, *, since_ns: int | None = None, annotated: bool = False) -> Iterator[StoredAnswer]:
    """The answers in a project of Phoenix; see `ragspan.evaluate.sources.Source`."""
    query = {"sort": "start_time", "order": "asc", "limit": _TRACES}
    if since_ns is not None:
        query["start_time"] = datetime.fromtimestamp(since_ns / 1e9, timezone.utc).isoformat()
    with contextlib.closing(HttpClient(phoenix_server(timeout=_PATIENCE))) as client:
        store = _Project(client, f"/v1/projects/{quote(project, safe='')}")
        for traces in store.pages("traces", query):
            ids = [trace["trace_id"] for trace in traces]
            spans = store.spans_of(ids)
            opinions, scores = store.annotations(spans) if annotated else ({}, {})
            for trace_id in ids:
                yield from answers_in(spans.get(trace_id, ()), opinions, scores)


class _Project:
    def __init__(self, client: HttpClient, path: str) -> None:
        self._client = client
        self._path = path

    def pages(self, kind: str, query: Mapping[str, Any]) -> Iterator[Sequence[Mapping[str, Any]]]:
        """Pages of at most `query["limit"]` entries; of fewer, where that is more than we read at once."""
        cursor: str | None = None
        limit = int(query["limit"])
        while True:
            asking = dict(query) | {"limit": str(limit)} | ({"cursor": cursor} if cursor else {})
            try:
                page = asked(self._client, "phoenix", "GET", f"{self._path}/{kind}", query=asking)
            except ReplyTooLarge:
                if limit == 1:
                    raise
                limit = limit // 2
                continue
            yield page["data"]
            if not (cursor := page.get("next_cursor")):
                return

    def spans_of(self, trace_ids: Sequence[str]) -> Mapping[str, Sequence[TracedSpan]]:
        """By trace."""
        found: dict[str, list[TracedSpan]] = defaultdict(list)
        for page in self.pages("spans", {"trace_id": trace_ids, "limit": _ROWS}) if trace_ids else ():
            for span in page:
                found[span["context"]["trace_id"]].append(_span(span))
        return found

    def annotations(
        self, spans: Mapping[str, Sequence[TracedSpan]]
    ) -> tuple[Mapping[str, Sequence[StoredScore]], Mapping[str, Sequence[StoredScore]]]:
        """What people said, from the oldest to the newest, and what ragspan wrote; by span."""
        ids = [span.span_id for of_trace in spans.values() for span in of_trace]
        rows = [
            row
            for first in range(0, len(ids), _IDS)
            for page in self.pages("span_annotations", {"span_ids": ids[first : first + _IDS], "limit": _ROWS})
            for row in page
        ]
        said = [row for row in rows if row["annotator_kind"] == "HUMAN"]
        others = [row for row in rows if row["annotator_kind"] != "HUMAN"]
        ours = [row for row in others if str(row.get("identifier")).startswith("ragspan")]
        return _by_span(sorted(said, key=lambda row: nanoseconds_of(row["updated_at"]) or 0)), _by_span(ours)


def _by_span(annotations: Iterable[Mapping[str, Any]]) -> Mapping[str, Sequence[StoredScore]]:
    found: dict[str, list[StoredScore]] = defaultdict(list)
    for row in annotations:
        said = row.get("result") or {}
        score = StoredScore(
            metric=row["name"], value=said.get("score"), label=said.get("label"), finding=said.get("explanation")
        )
        found[row["span_id"]].append(score)
    return found


def _span(span: Mapping[str, Any]) -> TracedSpan:
    kind = span.get("span_kind") or _UNKNOWN
    return TracedSpan(
        trace_id=span["context"]["trace_id"],
        span_id=span["context"]["span_id"],
        parent_id=span.get("parent_id"),
        name=span["name"],
        start_ns=nanoseconds_of(span["start_time"]) or 0,
        end_ns=nanoseconds_of(span["end_time"]) or 0,
        attributes=span["attributes"] | ({} if kind == _UNKNOWN else {_KIND: kind}),
        events=[
            SpanEvent(
                name=event["name"], time_ns=nanoseconds_of(event["timestamp"]) or 0, attributes=event["attributes"]
            )
            for event in span.get("events", ())
        ],
        status_error=span.get("status_code") == "ERROR",
        status_message=span.get("status_message") or "",
    )
