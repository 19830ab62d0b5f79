"""The spans of searches are known before the answer is scored, so that other emitters can write to them."""

from __future__ import annotations

from dataclasses import replace

from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

from ragspan.engine import ScoringEngine
from ragspan.outcomes import Score, ScoredRecord
from ragspan.records import SpanAnchor
from ragspan.telemetry.base import EmitHandle
from ragspan.testing import RecordingEmitter

SCORES = {"m": Score(value=0.5)}
PATIENCE = 20.0


def test_they_are_known_when_the_answer_is_opened_and_are_those_that_are_exported(telemetry, make_record):
    emitter, record = telemetry.emitter(), make_record()
    handle = emitter.start(record)
    (search,) = handle.retrieval_spans
    handle.finish(ScoredRecord(record=record, outcomes=SCORES, span=handle.span))

    exported = telemetry.span("retrieval vector_store").context
    assert (search.trace_id, search.span_id, search.sampled) == (exported.trace_id, exported.span_id, True)


def test_an_answer_that_is_not_sampled_has_none(make_telemetry, make_record):
    emitter, record = make_telemetry(sampler=ALWAYS_OFF).emitter(), make_record(parent=None)

    assert emitter.start(record).retrieval_spans == (None,)


def test_where_only_scores_are_added_they_are_those_of_the_other_instrumentation(telemetry, make_record):
    theirs = SpanAnchor(trace_id=0xA1, span_id=0xC3)
    emitter, record = telemetry.emitter(spans="scores"), make_record()
    record = replace(record, retrievals=(replace(record.retrievals[0], span=theirs),))

    assert emitter.start(record).retrieval_spans == (theirs,)


def test_a_processor_that_fails_at_searches_costs_their_spans_and_not_the_answers(telemetry, make_record, caplog):
    class FailsForSearches:
        def on_start(self, span, parent_context=None):
            if span.name.startswith("retrieval"):
                raise ValueError("no searches")

        def on_end(self, span): ...
        def _on_ending(self, span): ...

    telemetry.tracer_provider.add_span_processor(FailsForSearches())
    emitter, record = telemetry.emitter(), make_record()
    handle = emitter.start(record)
    handle.finish(ScoredRecord(record=record, outcomes={"m": Score(value=0.5)}, span=handle.span))

    assert handle.retrieval_spans == ()
    assert telemetry.span("invoke_workflow rivers").attributes["ragspan.score.m"] == 0.5
    assert caplog.messages == ["the spans of an answer's steps could not be started: ValueError"]


def test_the_engine_hands_them_to_all_emitters(telemetry, make_record):
    class Constant:
        name = "constant"

        async def score(self, record):
            return Score(value=0.5)

    listener = RecordingEmitter()
    emitters = [listener, telemetry.emitter()]
    with ScoringEngine(metrics=[Constant()], emitters=emitters, judging="thread") as engine:
        engine.submit(make_record())
        assert engine.flush(PATIENCE)

    (scored,) = listener.scored
    assert [span.span_id for span in scored.retrieval_spans] == [
        telemetry.span("retrieval vector_store").context.span_id
    ]


def test_an_emitter_that_says_nonsense_of_them_is_not_believed(telemetry, make_record):
    class Nonsense(RecordingEmitter):
        def start(self, record):
            return EmitHandle(self.emit, retrieval_spans=self.answer)

    for answer in (None, (), [SpanAnchor(trace_id=1, span_id=2)], (None,)):
        liar, listener = Nonsense(), RecordingEmitter()
        liar.answer = answer
        with ScoringEngine(metrics=[], emitters=[liar, telemetry.emitter(), listener], judging="thread") as engine:
            engine.submit(make_record())
            assert engine.flush(PATIENCE)
        assert len(listener.scored[0].retrieval_spans) == 1
