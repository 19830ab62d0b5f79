"""Reads traces that MLflow has stored, and what people said of them, by its REST API."""

from __future__ import annotations

import contextlib
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from google.protobuf.json_format import ParseDict
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from ragspan.evaluate.sources import ReplyTooLarge, StoredAnswer, StoredScore, asked, nanoseconds_of
from ragspan.telemetry import semconv
from ragspan.tools.http import HttpClient
from ragspan.tools.mlflow import EXPERIMENTS, TRACES, tracking_server
from ragspan_receiver.spans import TracedSpan, traced
from ragspan_receiver.stored import WHOLE_TRACE, answers_in

_AT_ONCE = 50  # traces
_PATIENCE = 60.0  # seconds: their spans are many
_JSON = (dict, list)


def stored(project: str, *, since_ns: int | None = None, annotated: bool = False) -> Iterator[StoredAnswer]:
    """The answers in an experiment of MLflow; see `ragspan.evaluate.sources.Source`."""
    with contextlib.closing(HttpClient(tracking_server(timeout=_PATIENCE))) as client:
        location = {"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": {"experiment_id": _experiment(client, project)}}
        search = {"locations": [location], "max_results": _AT_ONCE, "order_by": ["timestamp_ms ASC"]}
        if since_ns is not None:
            search["filter"] = f"timestamp_ms >= {since_ns // 1_000_000}"
        token: str | None = ""
        while token is not None:
            page = asked(client, "mlflow", "POST", f"{TRACES}/search", json=search | {"page_token": token})
            ids = [trace["trace_id"] for trace in page.get("traces", ())]
            for trace in _whole(client, ids):
                spans = [_span(span) for span in trace.get("spans", ())]
                about = trace["trace_info"] if annotated else {}
                yield from answers_in(spans, _opinions(about), _scores(about))
            token = page.get("next_page_token") or None


def _experiment(client: HttpClient, project: str) -> str:
    if project.isdecimal():
        return project
    path, query = f"{EXPERIMENTS}/get-by-name", {"experiment_name": project}
    return str(asked(client, "mlflow", "GET", path, query=query)["experiment"]["experiment_id"])


def _whole(client: HttpClient, ids: Sequence[str]) -> Sequence[Mapping[str, Any]]:
    """The traces with their spans, in the order of their ids; asked for in parts where all are more than we read at once."""
    if not ids:
        return ()
    try:
        found = asked(client, "mlflow", "GET", f"{TRACES}/batchGet", query={"trace_ids": ids}).get("traces", ())
    except ReplyTooLarge:
        if len(ids) == 1:
            raise
        half = len(ids) // 2
        return [*_whole(client, ids[:half]), *_whole(client, ids[half:])]
    return sorted(found, key=lambda trace: ids.index(trace["trace_info"]["trace_id"]))


def _opinions(trace: Mapping[str, Any]) -> Mapping[str, Sequence[StoredScore]]:
    """What people said, by span, from the oldest to the newest."""
    found: dict[str, list[StoredScore]] = defaultdict(list)
    for one in sorted(trace.get("assessments", ()), key=lambda one: nanoseconds_of(one.get("last_update_time")) or 0):
        is_human = one.get("source", {}).get("source_type") == "HUMAN"
        value = one.get("feedback", {}).get("value")
        if is_human and one.get("valid", True) and value is not None:
            is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
            number, word = (float(value), None) if is_number else (None, str(value))
            said = StoredScore(metric=one["assessment_name"], value=number, label=word)
            found[one.get("span_id") or WHOLE_TRACE].append(said)
    return found


def _scores(trace: Mapping[str, Any]) -> Mapping[str, Sequence[StoredScore]]:
    """What ragspan wrote, by span."""
    found: dict[str, list[StoredScore]] = defaultdict(list)
    for one in trace.get("assessments", ()):
        notes = one.get("metadata", {})
        if semconv.RECORD_ID in notes and one.get("valid", True):
            value, label = notes.get("ragspan.score"), notes.get("ragspan.label")
            score = StoredScore(
                metric=one["assessment_name"],
                value=float(value) if value else None,
                label=label or None,
                finding=one.get("rationale") or None,
            )
            found[one.get("span_id") or WHOLE_TRACE].append(score)
    return found


def _span(span: Mapping[str, Any]) -> TracedSpan:
    """A span of OTLP in protobuf's JSON. MLflow keeps texts that are JSON as what they hold; they become such texts again."""
    read = traced(ParseDict(span, Span(), ignore_unknown_fields=True))
    events = [replace(event, attributes=_with_texts(event.attributes)) for event in read.events]
    return replace(read, end_ns=read.end_ns or read.start_ns, attributes=_with_texts(read.attributes), events=events)


def _with_texts(attributes: Mapping[str, Any]) -> Mapping[str, Any]:
    return {
        key: json.dumps(value, ensure_ascii=False) if _was_text(key, value) else value
        for key, value in attributes.items()
    }


def _was_text(key: str, value: Any) -> bool:
    is_structure = isinstance(value, dict) or (isinstance(value, list) and any(isinstance(one, _JSON) for one in value))
    return is_structure or (key.endswith(".value") and not isinstance(value, str))
