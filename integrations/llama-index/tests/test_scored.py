"""From a query to its scores on a trace, with the parts that users put together."""

from __future__ import annotations

import asyncio
import gc

import pytest
from li_agents import agent, ask
from li_chats import chat_engine
from li_model import calls
from li_programs import ANSWER, QUESTION, drained, engine, engine_tool
from llama_index.core.base.response.schema import Response
from llama_index.core.query_engine import CustomQueryEngine

from ragspan import ScoringEngine
from ragspan.metrics import Completeness, ContextAdherence, ContextUtilization, Faithfulness
from ragspan.telemetry import OTelEmitter
from ragspan.testing import FakeJudge, RecordingEmitter
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


def test_the_steps_of_a_query_are_spans_under_its_own(scoring, telemetry):
    engine().query(QUESTION)
    assert scoring.flush(timeout=60)

    spans = spans_by_name(telemetry)
    answer = spans["invoke_workflow RetrieverQueryEngine"]
    assert {"retrieval FixedRetriever", "chat scripted"} <= set(spans)
    for name in ("retrieval FixedRetriever", "chat scripted"):
        assert spans[name].parent.span_id == answer.context.span_id
        assert answer.start_time <= spans[name].start_time <= spans[name].end_time <= answer.end_time


def test_the_scores_of_a_stream_are_on_the_trace_that_it_was_asked_in(scoring, telemetry, tracer):
    with tracer.start_as_current_span("GET /ask"):
        response = engine(streaming=True).query(QUESTION)
    list(response.response_gen)
    assert scoring.flush(timeout=60)

    spans = spans_by_name(telemetry)
    answer = spans["invoke_workflow RetrieverQueryEngine"]
    assert answer.parent.span_id == spans["GET /ask"].context.span_id
    assert scores(answer)["faithfulness"] == 1.0


def test_a_stream_that_was_left_is_not_judged(scoring, telemetry):
    next(engine(streaming=True, response_mode="tree_summarize").query(QUESTION).response_gen)
    gc.collect()
    assert scoring.flush(timeout=60)

    answer = spans_by_name(telemetry)["invoke_workflow RetrieverQueryEngine"]
    assert answer.attributes["ragspan.answer.status"] == "aborted"
    assert answer.attributes["ragspan.not_applicable.faithfulness"] == "answer_aborted"


def test_every_kind_of_request_is_scored(scoring, model):
    engine().query(QUESTION)
    list(chat_engine("context").stream_chat("The cello?").response_gen)

    async def asynchronous():
        await engine().aquery(QUESTION)
        await drained((await engine(streaming=True).aquery(QUESTION)).response_gen)
        model.says(calls("search", input="cello"), ANSWER, "In the end.")
        await ask(agent(engine_tool("search")), QUESTION)

    asyncio.run(asynchronous())
    assert scoring.flush(timeout=60)

    stats = scoring.stats()
    assert (stats.submitted, stats.finished, dict(stats.dropped), dict(stats.errors)) == (5, 5, {}, {})


def test_an_attribute_of_the_applications_that_breaks_is_not_asked(scoring, caplog):
    """What would break is an object of the application's, which the handler looks into."""

    class Unreadable(Response):
        @property
        def response(self):
            raise OSError("secret")

        @response.setter
        def response(self, text):
            """Nothing is kept."""

    class Own(CustomQueryEngine):
        def custom_query(self, query_str):
            return Unreadable("Gladly.")

    assert isinstance(Own().query(QUESTION), Unreadable)
    engine().query(QUESTION)
    assert scoring.flush(timeout=60)

    assert scoring.stats().errors == {}
    assert scoring.stats().finished >= 1
    assert "OSError" not in caplog.text
    assert "secret" not in caplog.text


def test_scores_by_a_judge_that_asks_the_applications_own_model(telemetry, model):
    """The judge's queries run in the worker under suppression, so that they make no records of their own."""

    class Consulting(FakeJudge):
        async def extract_claims(self, record):
            return [str(await engine().aquery(f"Claims of: {record.response}"))]

    seen = RecordingEmitter()
    with ScoringEngine(metrics=[Faithfulness(Consulting())], emitters=[seen]) as made:
        handler = RagspanCallbackHandler(sink=made)
        engine().query(QUESTION)
        assert made.flush(timeout=60)
        assert made.stats().submitted == 1
        handler.detach()

    (scored,) = seen.scored
    assert scored.record.question == QUESTION
    assert scored.outcomes["faithfulness"].value == 1.0
