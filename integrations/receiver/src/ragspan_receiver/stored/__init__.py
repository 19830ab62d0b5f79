"""Reads the traces that tools have stored: the answers in them, with what people and ragspan said of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ragspan.config import Settings
from ragspan.evaluate.sources import StoredAnswer, StoredScore
from ragspan.records import RagRecord, RetrievedContext, SpanAnchor
from ragspan.telemetry import semconv
from ragspan.telemetry.values import MAX_TEXT_CHARS
from ragspan_receiver.readers import records_of
from ragspan_receiver.readers.payloads import Payloads, numbered, text_of
from ragspan_receiver.spans import TracedSpan

WHOLE_TRACE = ""
"""Stands for a span's id where an opinion is about all of a trace."""


def answers_in(
    spans: Sequence[TracedSpan],
    opinions: Mapping[str, Sequence[StoredScore]],
    scores: Mapping[str, Sequence[StoredScore]] = {},
) -> Iterator[StoredAnswer]:
    """The answers in one trace that a tool has stored, for the packages of such tools.

    Args:
        spans: of the trace, in any order. Those that ragspan wrote are read, too, where the tool does not keep who wrote them.
        opinions: what people said, by the id of the span. What they said of the trace, or of its root, is about its answer
            if there is just one, and counts less than what they said of the answer's span.
        scores: what ragspan wrote, in the same way.
    """
    records = records_of(spans, retrieval_tools=Settings.from_environment().retrieval_tools)
    by_id = {span.span_id: span for span in spans}
    read = {record.parent.span_id for record in records if record.parent}
    records += filter(None, (_captured(span) for span in spans if int(span.span_id, 16) not in read))
    around = [WHOLE_TRACE, *(span.span_id for span in spans if span.parent_id is None)] if len(records) == 1 else []
    for record in records:
        own = format(record.parent.span_id, "016x") if record.parent else WHOLE_TRACE
        places = [*(one for one in reversed(around) if one != own), own]  # what is said of the span itself comes last
        said = [opinion for one in places for opinion in opinions.get(one, ())]
        scored = next((scores[one] for one in (own, *around) if scores.get(one)), ())
        yield StoredAnswer(record=_as_written(record, by_id[own]), opinions=said, scores=scored)


def _captured(span: TracedSpan) -> RagRecord | None:
    """The record of ragspan's own span of an answer that no other span tells of: a program's code has answered."""
    about = span.attributes
    if about.get(semconv.FRAMEWORK) != "python" or not isinstance(response := about.get(semconv.OUTPUT_VALUE), str):
        return None
    found = Payloads().documents_in(numbered(about, semconv.RETRIEVAL_DOCUMENTS), loosely=True)
    contexts = [RetrievedContext(text=one.text, id=one.id, score=score) for one, score in found]
    return RagRecord(
        question=text_of(about, [semconv.INPUT_VALUE]),
        contexts=None if any(len(one.text) >= MAX_TEXT_CHARS for one, _ in found) else contexts,
        response=response,
        name=text_of(about, [semconv.GEN_AI_WORKFLOW_NAME]) or span.name,
        started_ns=span.start_ns,
        ended_ns=span.end_ns,
        parent=SpanAnchor(trace_id=int(span.trace_id, 16), span_id=int(span.span_id, 16), is_remote=True),
    )


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
