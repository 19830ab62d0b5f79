"""Answers in traces that a tool has stored, for the packages of such tools."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ragspan.config import Settings
from ragspan.datasets.sources import Opinion, StoredAnswer
from ragspan.records import RagRecord
from ragspan.telemetry import semconv
from ragspan_otlp.readers import records_of
from ragspan_otlp.receiver import linked
from ragspan_otlp.traces import TracedSpan

WHOLE_TRACE = ""
"""In place of a span's id: an opinion on all of a trace."""


def answers_in(spans: Sequence[TracedSpan], opinions: Mapping[str, Sequence[Opinion]]) -> Iterator[StoredAnswer]:
    """The answers in one trace.

    Args:
        spans: of the trace, in any order. Those that ragspan wrote are read, too, where the tool does not keep who wrote them.
        opinions: what people said, by the id of the span. What they said of the trace, or of its root, is about its answer
            where it has just one.
    """
    records = linked(records_of(spans, retrieval_tools=Settings.from_environment().retrieval_tools), spans)
    by_id = {span.span_id: span for span in spans}
    around = [WHOLE_TRACE, *(span.span_id for span in spans if span.parent_id is None)] if len(records) == 1 else []
    for record in records:
        own = format(record.parent.span_id, "016x") if record.parent else WHOLE_TRACE
        said = next((opinions[one] for one in (own, *around) if opinions.get(one)), ())
        yield StoredAnswer(record=_as_written(record, by_id[own]), opinions=said)


def _as_written(record: RagRecord, span: TracedSpan) -> RagRecord:
    """The record that ragspan wrote the span of: scores replace those that it wrote.

    Spans hold a part of what a record does: where contexts are missing, they cannot be known.
    """
    record_id = span.attributes.get(semconv.RECORD_ID)
    if not isinstance(record_id, str):
        return record
    count = span.attributes.get(semconv.CONTEXTS_COUNT)
    is_whole = record.contexts is not None and len(record.contexts) == count
    return replace(record, record_id=record_id, contexts=record.contexts if is_whole else None)
