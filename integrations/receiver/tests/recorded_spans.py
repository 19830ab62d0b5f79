"""Spans of the real instrumentors as JSON, so that tests can read them without frameworks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from whole_records import WholeRecords

from ragspan.records import RagRecord
from ragspan_receiver import readers
from ragspan_receiver.spans import SpanEvent, TracedSpan

FOLDER = Path(__file__).with_name("recorded_spans")
QUESTION = "When does Beta settle payments?"
PASSAGES = ("Beta settles payments every night.", "Gamma sends invoices by mail.")
ANSWER = "Every night."
WHOLE = WholeRecords(Path(__file__).with_name("whole_records.json"))
SEEN: list[RagRecord] = []
"""Records that a test has had read."""


def load(name: str) -> list[TracedSpan]:
    """The spans of one trace."""
    spans = json.loads((FOLDER / f"{name}.json").read_text())
    return [TracedSpan(**span | {"events": [SpanEvent(**event) for event in span["events"]]}) for span in spans]


def records_of(spans: list[TracedSpan], **options: Any) -> list[RagRecord]:
    """The records of a trace, which are compared whole, too."""
    made = readers.records_of(spans, **options)
    SEEN.extend(made)
    return made


def only(spans: list[TracedSpan], **options: Any) -> RagRecord:
    """The record of a trace that has one."""
    (found,) = records_of(spans, **options)
    return found
