"""Spans of the real instrumentors as JSON, so that tests can read them without frameworks."""

from __future__ import annotations

import json
from pathlib import Path

from ragspan_receiver.spans import SpanEvent, TracedSpan

FOLDER = Path(__file__).with_name("recorded_spans")
QUESTION = "When does Beta settle payments?"
PASSAGES = ("Beta settles payments every night.", "Gamma sends invoices by mail.")
ANSWER = "Every night."


def load(name: str) -> list[TracedSpan]:
    """The spans of one trace."""
    spans = json.loads((FOLDER / f"{name}.json").read_text())
    return [TracedSpan(**span | {"events": [SpanEvent(**event) for event in span["events"]]}) for span in spans]
