"""The span under which an answer belongs, and scores of an application that is traced already, drawn once."""

from __future__ import annotations

import pytest
from agent_programs import calls, search, search_agent, user_says
from lc_captures import config_for
from openinference.instrumentation.langchain import LangChainInstrumentor
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk.metrics import MeterProvider
from rag_programs import ANSWER, QUESTION, rag_chain
from traced_alike import Anchored, TracedAlready
from traced_application import ids

from ragspan.config import Settings
from ragspan.defaults import engine_from
from ragspan.telemetry.otel_context import suppressed
from ragspan.telemetry.providers import EnvironmentProviders
from ragspan_langchain import RagspanCallbackHandler

pytestmark = pytest.mark.filterwarnings("ignore:Calling .text")  # OpenInference does, for the attributes of its spans


@pytest.fixture
def asked(captured):
    def ask(question):
        rag_chain().invoke(question, captured.config)
        return captured.record()

    return ask


@pytest.fixture
def aask(captured):
    return lambda question: rag_chain().ainvoke(question, captured.config)


class TestAnchored(Anchored):
    """Of chains."""


# The calls of a judge


def test_what_runs_under_suppressed_instrumentation_is_not_captured(captured):
    with suppressed():
        rag_chain().invoke(QUESTION, captured.config)

    assert captured.answers() == []


# Beside other tracing


@pytest.fixture
def ask():
    chain = rag_chain().with_config(run_name="rivers")
    return lambda application: chain.invoke(QUESTION, config_for(application.engine))


class TestTracedAlready(TracedAlready):
    """Chains."""

    openinference = LangChainInstrumentor
    root = workflow = "rivers"


def test_the_score_of_an_agent(application, openinference):
    search_agent(calls(search("pump")), ANSWER, name="librarian").invoke(
        user_says(QUESTION), config_for(application.engine)
    )

    assert application.scored_spans() == ["librarian"]


def test_a_stream_whose_reader_leaves_belongs_to_its_run(application, openinference):
    stream = rag_chain().with_config(run_name="rivers").stream(QUESTION, config_for(application.engine))
    next(stream)
    stream.close()

    assert [outcome.reason for outcome in application.outcomes()] == ["answer_aborted"]
    assert application.targets() == [ids(application.span("rivers"))]
    assert application.drawn_by_ragspan() == []


# From the environment


def test_the_environment_asks_for_nothing_but_scores(openinference, application):
    providers = EnvironmentProviders(
        tracer_provider=application.provider, meter_provider=MeterProvider(), logger_provider=LoggerProvider()
    )
    settings = Settings.from_environment(
        {"RAGSPAN_SPANS": "scores", "RAGSPAN_METRICS": "faithfulness", "RAGSPAN_JUDGING": "thread"}
    )
    with engine_from(settings, providers) as engine:
        config = {"callbacks": [RagspanCallbackHandler(sink=engine)]}
        rag_chain().with_config(run_name="rivers").invoke(QUESTION, config)
        assert engine.flush(timeout=60)

    score = application.span("evaluation faithfulness")
    assert score.parent.span_id == application.span("rivers").context.span_id
    assert application.drawn_by_ragspan() == ["evaluation faithfulness"]
