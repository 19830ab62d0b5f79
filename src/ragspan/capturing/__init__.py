"""Captures answers: of plain Python code (`answer`), and of frameworks, whose requests are noted in logs (`log`, `snapshots`).

Integrations import these names from here.
"""

from ragspan.capturing.answer import Answer, add_context_recorder, capture, enclosing_answer, record_contexts
from ragspan.capturing.log import Event, EventKind, RequestLog, RunKey, TokenStream, nested_logs
from ragspan.capturing.nested import OuterRun, add_request_finder
from ragspan.capturing.open_requests import MAX_RUNS, OpenRequests
from ragspan.safe_copy import (
    CUT,
    MAX_BLOCKS,
    MAX_NODES_OF_STEP,
    OPAQUE,
    PART_BYTES,
    Copying,
    Hidden,
    Opaque,
    Snapshot,
    Snapshots,
)
from ragspan.telemetry.otel_context import anchor_of_span, current_anchor, suppressed

__all__ = [
    "CUT",
    "MAX_BLOCKS",
    "MAX_NODES_OF_STEP",
    "MAX_RUNS",
    "OPAQUE",
    "PART_BYTES",
    "Answer",
    "Copying",
    "Event",
    "EventKind",
    "Hidden",
    "Opaque",
    "OpenRequests",
    "OuterRun",
    "RequestLog",
    "RunKey",
    "Snapshot",
    "Snapshots",
    "TokenStream",
    "add_context_recorder",
    "add_request_finder",
    "anchor_of_span",
    "capture",
    "current_anchor",
    "enclosing_answer",
    "nested_logs",
    "record_contexts",
    "suppressed",
]
