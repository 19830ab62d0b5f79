"""Whole records of recorded traces, and what of them changes where a span, or what a span says, did not come."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from recorded_spans import FOLDER, WHOLE, load

from ragspan_receiver.readers import records_of
from ragspan_receiver.spans import TracedSpan

NAMES = sorted(file.stem for file in FOLDER.glob("*.json"))


@pytest.mark.parametrize("name", NAMES)
def test_the_whole_record_of_a_recorded_trace(name: str) -> None:
    spans = load(name)
    (root,) = (span for span in spans if span.parent_id is None)
    (record,) = made = records_of(spans)
    known, found = WHOLE.expected(name, made)

    assert found == known
    assert (record.record_id, record.started_ns) == (root.trace_id + root.span_id, root.start_ns)
    assert record.ended_ns == root.end_ns


def fields(spans: list[TracedSpan]) -> dict[str, Any]:
    """The first record's, as JSON."""
    made = records_of(spans)
    return json.loads(made[0].to_json()) if made else {}


@pytest.mark.parametrize("name", NAMES)
def test_what_changes_where_a_span_is_missing_or_says_less(name: str) -> None:
    """A step that is told of by no span, by one without attributes, and by one that failed; and attributes that did not come."""
    spans = load(name)
    whole, changes = fields(spans), {}
    for at, span in enumerate(spans):
        without = {key: value for key, value in span.attributes.items() if "content" not in key and "value" not in key}
        instead = {
            "missing": [],
            "empty": [replace(span, attributes={})],
            "failed": [replace(span, status_error=True, status_message="no")],
            "without texts": [replace(span, attributes=without)],
        }
        for change, spans_there in instead.items():
            found = fields([*spans[:at], *spans_there, *spans[at + 1 :]])
            changed = [
                f"{key}: {json.dumps(found.get(key), ensure_ascii=False)[:60]}"
                for key in sorted({*whole, *found})
                if not key.endswith("_ns") and whole.get(key) != found.get(key)
            ]
            changes[f"{span.name} {change}"] = " | ".join(changed) if found else "no record"
    known, told = WHOLE.told(f"{name}, changed", changes)

    assert told == known
