"""Captures answers: of plain Python code (`answer`), and of frameworks, whose requests are noted in logs (`log`).

Integrations import these names from here.
"""

from ragspan.capturing.answer import Answer as Answer
from ragspan.capturing.answer import add_context_recorder as add_context_recorder
from ragspan.capturing.answer import capture as capture
from ragspan.capturing.answer import enclosing_answer as enclosing_answer
from ragspan.capturing.answer import record_contexts as record_contexts
from ragspan.capturing.log import Event as Event
from ragspan.capturing.log import EventKind as EventKind
from ragspan.capturing.log import RequestLog as RequestLog
from ragspan.capturing.log import RunKey as RunKey
from ragspan.capturing.log import TokenStream as TokenStream
from ragspan.capturing.open_requests import MAX_RUNS as MAX_RUNS
from ragspan.capturing.open_requests import OpenRequests as OpenRequests
from ragspan.capturing.open_requests import OuterRun as OuterRun
from ragspan.capturing.open_requests import add_request_finder as add_request_finder
from ragspan.telemetry.otel_context import anchor_of_span as anchor_of_span
from ragspan.telemetry.otel_context import current_anchor as current_anchor
from ragspan.telemetry.otel_context import suppressed as suppressed
