"""Captures answers: of plain Python code (`answer`), and of frameworks, whose requests are noted in logs (`log`, `snapshots`).

Integrations import these names from here.
"""

from ragspan.capturing.answer import Answer, add_context_recorder, capture, enclosing_answer, record_contexts
from ragspan.capturing.inside import Around, add_request_finder
from ragspan.capturing.log import Event, EventKind, RequestLog, RunKey, TokenStream, inner_logs
from ragspan.capturing.open_requests import MAX_RUNS, OpenRequests
from ragspan.capturing.snapshots import (
    CUT,
    MAX_BLOCKS,
    MAX_NODES_OF_STEP,
    OPAQUE,
    Copying,
    Hidden,
    Opaque,
    Snapshot,
    Snapshots,
)
from ragspan.sizes import PART_BYTES
from ragspan.telemetry.otel_context import anchor_of_span, current_anchor, suppressed

__all__ = [
    "CUT",
    "MAX_BLOCKS",
    "MAX_NODES_OF_STEP",
    "MAX_RUNS",
    "OPAQUE",
    "PART_BYTES",
    "Answer",
    "Around",
    "Copying",
    "Event",
    "EventKind",
    "Hidden",
    "Opaque",
    "OpenRequests",
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
    "inner_logs",
    "record_contexts",
    "suppressed",
]
