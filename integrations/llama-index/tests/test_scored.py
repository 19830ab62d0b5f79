"""From a query to its scores on a trace, with the parts that users put together."""

from __future__ import annotations

import gc

import pytest
from fakes import FakeJudge
from li_programs import QUESTION, engine

from ragspan import ScoringEngine
from ragspan.metrics import Completeness, ContextAdherence, ContextUtilization, Faithfulness
from ragspan.telemetry import OTelEmitter
from ragspan_llama_index import RagspanCallbackHandler

METRICS = ["completeness", "context_adherence", "context_utilization", "faithfulness"]


@pytest.fixture
def scoring(telemetry):
    judge = FakeJudge(ratings=[0.5])
    emitter = OTelEmitter(tracer_provider=telemetry.tracer_provider, meter_provider=telemetry.meter_provider)
    metrics = [ContextAdherence(judge), Completeness(judge), ContextUtilization(judge), Faithfulness(judge)]
    with ScoringEngine(metrics=metrics, emitters=[emitter]) as made:
        handler = RagspanCallbackHandler(sink=made)
        yield made
        handler.detach()


def spans_by_name(telemetry):
    return {span.name: span for span in telemetry.spans()}


def scores(span):
    return {metric: span.attributes[f"ragspan.score.{metric}"] for metric in METRICS}


def test_the_scores_of_a_query_are_on_its_span_under_the_applications(scoring, telemetry, tracer):
    with tracer.start_as_current_span("GET /ask"):
        engine().query(QUESTION)
    assert scoring.flush(timeout=60)

    spans = spans_by_name(telemetry)
    answer, request = spans["invoke_workflow RetrieverQueryEngine"], spans["GET /ask"]
    assert answer.parent.span_id == request.context.span_id
    assert answer.context.trace_id == request.context.trace_id
    assert request.start_time <= answer.start_time <= answer.end_time <= request.end_time
    assert scores(answer) == {
        "completeness": 0.5,
        "context_adherence": 1.0,
        "context_utilization": 1.0,
        "faithfulness": 1.0,
    }


def test_a_stream_that_was_left_is_not_judged(scoring, telemetry):
    next(engine(streaming=True, response_mode="tree_summarize").query(QUESTION).response_gen)
    gc.collect()
    assert scoring.flush(timeout=60)

    answer = spans_by_name(telemetry)["invoke_workflow RetrieverQueryEngine"]
    assert answer.attributes["ragspan.answer.status"] == "aborted"
    assert answer.attributes["ragspan.not_applicable.faithfulness"] == "answer_aborted"
