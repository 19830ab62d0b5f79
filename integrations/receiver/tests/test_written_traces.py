"""Whole records of traces that are rows of JSON: spans in forms that no recorded trace has."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from recorded_spans import records_of

from ragspan_receiver.spans import SpanEvent, TracedSpan

TRACES = map(json.loads, Path(__file__).with_name("written_traces.jsonl").read_text("utf-8").splitlines())


def span(number: int, parent: int | None, attributes: dict[str, Any], **others: Any) -> TracedSpan:
    """A span that begins after those of lower numbers, and ends before."""
    events = [SpanEvent(name="exception", time_ns=1, attributes=one) for one in others.pop("exceptions", ())]
    about = {
        "name": "work",
        "start_ns": number,
        "end_ns": 100 - number,
        "scope": "openinference.instrumentation.langchain",
    }
    ids = {"span_id": f"{number:016x}", "parent_id": None if parent is None else f"{parent:016x}"}
    return TracedSpan(trace_id="0" * 31 + "1", attributes=attributes, events=events, **ids, **about | others)


@pytest.mark.parametrize("trace", [pytest.param(one, id=one["trace"]) for one in TRACES])
def test_the_whole_record_of_a_written_trace(trace: dict[str, Any]) -> None:
    spans = [span(*one[:3], **(one[3] if len(one) > 3 else {})) for one in trace["spans"]]

    assert len(records_of(spans, retrieval_tools=["look_up"])) == trace.get("records", 1)
