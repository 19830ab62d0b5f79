"""Makes records of the spans that other instrumentations wrote: OpenInference, OpenTelemetry's GenAI conventions, Traceloop.

Each convention has a reader, which makes steps of its spans. `trees` says which steps belong to one request, `requests` makes
the record of it, by the rule that the handlers have: what stands in the answering prompt counts.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ragspan.runs.payloads import Message
from ragspan.throttled_log import ThrottledLog
from ragspan_otlp.readers import genai, openinference
from ragspan_otlp.readers.payloads import Payloads
from ragspan_otlp.readers.steps import Reader, Step
from ragspan_otlp.readers.trees import Tree
from ragspan_otlp.traces import TracedRecord, TracedSpan

_OWN = "ragspan"
_log = ThrottledLog()


def records_of(spans: Sequence[TracedSpan], *, retrieval_tools: Collection[str] = ()) -> list[TracedRecord]:
    """The answers in one trace, in the order in which they began; pure, and it raises nothing, whatever the spans hold.

    Args:
        spans: of one trace, in any order. Those of conventions that no reader knows only tell what lies in what.
        retrieval_tools: names of tools whose results are documents.
    """
    payloads = Payloads()
    ordered = sorted(spans, key=lambda span: span.start_ns)
    steps = {span.span_id: step for span in ordered if (step := _step(span, payloads)) is not None}
    for step in steps.values():
        if step.kind == "tool" and step.name in retrieval_tools:
            _as_search(step, payloads)
    found: list[TracedRecord] = []
    for request in Tree(spans, steps).requests():
        try:
            record = request.record()
        except Exception as problem:  # noqa: BLE001  others wrote the spans
            _log.trouble("spans", "a trace's spans could not be read (%s)", type(problem).__name__)
            continue
        if record is not None:
            found.append(TracedRecord(record=record, span_id=request.span.span_id))
    return sorted(found, key=lambda one: one.record.started_ns)


def _step(span: TracedSpan, payloads: Payloads) -> Step | None:
    read = _reader_of(span)
    try:
        return None if read is None else read(span, payloads)
    except Exception as problem:  # noqa: BLE001  others wrote the span
        _log.trouble("span", "a span could not be read (%s)", type(problem).__name__)
        return None


def _reader_of(span: TracedSpan) -> Reader | None:
    """The reader of the convention that a span follows, by its attributes; ragspan's own spans are no steps."""
    if span.scope.startswith(_OWN):
        return None
    if openinference.KIND in span.attributes:
        return openinference.read
    return genai.read if genai.is_one(span) else None


def _as_search(step: Step, payloads: Payloads) -> None:
    """A tool whose results are documents is a search."""
    asked = step.inputs.values() if isinstance(step.inputs, dict) else [step.inputs]
    step.query = next((text for text in asked if isinstance(text, str)), None)
    result = step.output.text if isinstance(step.output, Message) else step.output
    step.kind, step.found = "retriever", payloads.documents_in(result, loosely=True)
