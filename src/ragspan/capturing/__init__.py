"""Captures answers: of plain Python code (`answer`), and of frameworks, whose requests are noted in logs (`log`, `snapshots`).

Integrations import these names from here.
"""

from ragspan.capturing.answer import Answer, add_context_recorder, capture, enclosing_answer, record_contexts
from ragspan.capturing.inside import Around, add_request_finder
from ragspan.capturing.log import Event, EventKind, RequestLog, RunKey, TokenStream, inner_logs
from ragspan.capturing.open_requests import MAX_RUNS, OpenRequests
from ragspan.capturing.snapshots import CUT, OPAQUE, Copying, Hidden, Opaque, Snapshot, Snapshots

__all__ = [
    "CUT",
    "MAX_RUNS",
    "OPAQUE",
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
    "capture",
    "enclosing_answer",
    "inner_logs",
    "record_contexts",
]
