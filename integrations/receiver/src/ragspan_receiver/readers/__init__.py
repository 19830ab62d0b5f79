"""Makes records of others' spans: of OpenInference, OpenTelemetry's GenAI conventions, Traceloop, the Vercel AI SDK, Langfuse, LangSmith.

Each convention has a reader, which makes steps of its spans. `steps` says which steps belong to one request, `requests` makes
the record of it, by the rule that the handlers have: what is in the answering prompt counts.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from ragspan.config import Settings
from ragspan.evaluate.sources import Opinion, StoredAnswer, StoredScore
from ragspan.records import RagRecord
from ragspan.request import ToolStep, documents_of_result, searched_with
from ragspan.telemetry import semconv
from ragspan.throttled_log import ThrottledLog
from ragspan_receiver.readers import exported, genai, openinference, vercel
from ragspan_receiver.readers.payloads import Payloads
from ragspan_receiver.readers.requests import Request
from ragspan_receiver.readers.steps import ReadSpan, requests_in
from ragspan_receiver.spans import TracedSpan

WHOLE_TRACE = ""
"""Stands for a span's id where an opinion is about all of a trace."""
_CONVENTIONS = ("gen_ai.", "llm.", "ai.", "gcp.vertex.agent.", "mlflow.span", "lmnr.span")
"""The attributes of spans about models begin with these."""
_UNREAD_SCOPES = ("autogen",)
"""AutoGen's own spans have no such attributes."""
_READERS: Sequence[tuple[str, Callable[[TracedSpan, Payloads], ReadSpan | None]]] = (
    (openinference.KIND, openinference.read),
    (vercel.OPERATION, vercel.read),
    (exported.LANGFUSE, exported.read_langfuse),
    (exported.LANGSMITH, exported.read_langsmith),
)
"""The attribute that only spans of a convention have, and its reader. Spans without one may be of the GenAI conventions."""
_log = ThrottledLog()


def records_of(
    spans: Sequence[TracedSpan],
    *,
    retrieval_tools: Collection[str] = (),
    not_read: Callable[[str], object] = lambda _: None,
) -> list[RagRecord]:
    """The answers in one trace, in the order in which they began; it raises nothing, whatever the spans hold.

    Each record's parent is the answer's span, and its id is always the same for that.

    Args:
        spans: of one trace, in any order. Those of unknown conventions only show which span is inside which.
        retrieval_tools: names of tools whose results are documents.
        not_read: is called with what it cannot read of spans about models, once for each; the log names them, too.
    """
    payloads = Payloads()
    ordered = sorted(spans, key=lambda span: span.start_ns)
    steps = {span.span_id: step for span in ordered if (step := _step(span, payloads, not_read)) is not None}
    for step in steps.values():
        if isinstance(step.step, ToolStep) and step.step.name in retrieval_tools:
            step.become_search(searched_with(step.step), documents_of_result(step.step.output))
    found: list[RagRecord] = []
    for of_request, span in requests_in(spans, steps):
        try:
            record = Request(of_request, span).record()
        except Exception as problem:  # noqa: BLE001  others wrote the spans
            _log.report("spans", "a trace's spans could not be read (%s)", type(problem).__name__)
            continue
        if record is not None:
            found.append(record)
    return sorted(found, key=lambda record: record.started_ns)


def _step(span: TracedSpan, payloads: Payloads, not_read: Callable[[str], object]) -> ReadSpan | None:
    """The step that the reader of the span's convention makes; ragspan's own spans are not steps."""
    if span.scope.startswith(semconv.SCOPE):
        return None
    try:
        reader = next((read for mark, read in _READERS if mark in span.attributes), None)
        if reader is None and genai.is_one(span):
            reader = genai.read
        step = None if reader is None else reader(span, payloads)
    except Exception as problem:  # noqa: BLE001  others wrote the span
        _log.report("span", "a span could not be read (%s)", type(problem).__name__)
        return None
    what = _not_read_of(span, step)
    if what is not None:
        _log.report(what, "%s", what)
        not_read(what)
    return step


def _not_read_of(span: TracedSpan, step: ReadSpan | None) -> str | None:
    """Which spans of which instrumentation are about models, and cannot be read; None for this one."""
    scope = span.scope[:100]
    if step is not None:
        is_silent = step.model is not None and not step.model.messages and step.model.reply is None
        about = f"calls of models by {scope!r} have no texts: content is off, or in a form that is not read"
        return about if is_silent else None
    if any(mark in span.attributes for mark, _ in _READERS) or genai.knows(span):
        return None
    if any(key.startswith(_CONVENTIONS) for key in span.attributes) or scope.startswith(_UNREAD_SCOPES):
        operation = str(span.attributes.get("gen_ai.operation.name", "without gen_ai.operation.name"))
        return f"spans of {scope!r} are of no convention that is read: {operation[:100]}"
    return None


# Traces that a tool has stored


def answers_in(
    spans: Sequence[TracedSpan],
    opinions: Mapping[str, Sequence[Opinion]],
    scores: Mapping[str, Sequence[StoredScore]] = {},
) -> Iterator[StoredAnswer]:
    """The answers in one trace that a tool has stored, for the packages of such tools.

    Args:
        spans: of the trace, in any order. Those that ragspan wrote are read, too, where the tool does not keep who wrote them.
        opinions: what people said, by the id of the span. What they said of the trace, or of its root, is about its answer
            if there is just one.
        scores: what ragspan wrote, in the same way.
    """
    records = records_of(spans, retrieval_tools=Settings.from_environment().retrieval_tools)
    by_id = {span.span_id: span for span in spans}
    around = [WHOLE_TRACE, *(span.span_id for span in spans if span.parent_id is None)] if len(records) == 1 else []
    for record in records:
        own = format(record.parent.span_id, "016x") if record.parent else WHOLE_TRACE
        said = next((opinions[one] for one in (own, *around) if opinions.get(one)), ())
        scored = next((scores[one] for one in (own, *around) if scores.get(one)), ())
        yield StoredAnswer(record=_as_written(record, by_id[own]), opinions=said, scores=scored)


def _as_written(record: RagRecord, span: TracedSpan) -> RagRecord:
    """The record that ragspan wrote the span of: new scores replace those that it wrote.

    Spans hold only a part of a record: if contexts are missing, they cannot be known.
    """
    record_id = span.attributes.get(semconv.RECORD_ID)
    if not isinstance(record_id, str):
        return record
    count = span.attributes.get(semconv.CONTEXTS_COUNT)
    is_whole = record.contexts is not None and len(record.contexts) == count
    return replace(record, record_id=record_id, contexts=record.contexts if is_whole else None)
