"""Answers that no span but ragspan's own tells of, as tools store them."""

from __future__ import annotations

import pytest

from ragspan import RagRecord, RetrievedContext, ScoredRecord
from ragspan.outcomes import Score
from ragspan.telemetry import OTelEmitter
from ragspan_receiver.spans import TracedSpan
from ragspan_receiver.stored import answers_in

CONTEXTS = [
    RetrievedContext(text="Cards settle after midnight.", id="doc-1", score=0.5),
    RetrievedContext(text="Fees."),
]


@pytest.fixture
def stored(telemetry):
    """Emits an answer of `ragspan.capture`, and reads it from the span."""

    def read(contexts, **options):
        record = RagRecord(question="When?", contexts=contexts, response="At noon.")
        outcomes = {"faithfulness": Score(value=0.0, threshold=0.8)}
        OTelEmitter(tracer_provider=telemetry.tracer_provider, **options).start(record).finish(
            ScoredRecord(record=record, outcomes=outcomes)
        )
        (span,) = telemetry.spans()
        written = TracedSpan(
            trace_id=f"{span.context.trace_id:032x}",
            span_id=f"{span.context.span_id:016x}",
            parent_id=None,
            name=span.name,
            start_ns=span.start_time,
            end_ns=span.end_time,
            attributes=dict(span.attributes),
        )
        return record, list(answers_in([written], {written.span_id: ["bad"]}))

    return read


def test_an_answer_of_a_programs_own_code_comes_back_whole_with_what_people_said(stored):
    record, (found,) = stored(CONTEXTS, capture_content=True)

    assert (found.record.record_id, found.opinions) == (record.record_id, ["bad"])
    assert (found.record.question, found.record.response) == ("When?", "At noon.")
    assert list(found.record.contexts) == CONTEXTS


def test_contexts_that_were_cut_are_unknown(stored):
    _, (found,) = stored([*CONTEXTS, RetrievedContext(text="long " * 5000)], capture_content=True)

    assert found.record.contexts is None


def test_without_content_there_is_nothing_to_judge(stored):
    _, found = stored(CONTEXTS, capture_content=False)

    assert found == []
