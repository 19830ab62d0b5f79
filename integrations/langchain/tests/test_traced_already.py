"""The span under which an answer belongs, and scores of an application that is traced already, drawn once."""

from __future__ import annotations

import asyncio

import pytest
from agent_programs import calls, search, search_agent, user_says
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.runnables import RunnableLambda
from lc_captures import config_for
from openinference.instrumentation.langchain import LangChainInstrumentor
from opentelemetry import context
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.trace import set_span_in_context
from rag_programs import ANSWER, PUMP, QUESTION, FailingRetriever, TopicRetriever, answer_chain, rag_chain
from traced_alike import Anchored, TracedAlready, anchored, current
from traced_application import SCORE, ids

import ragspan
from ragspan.config import Settings
from ragspan.defaults import engine_from
from ragspan.telemetry.environment import EnvironmentProviders
from ragspan.telemetry.otel_context import suppressed
from ragspan_langchain import RagspanCallbackHandler, RagspanLangChainInstrumentor

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


def test_the_span_of_the_reader_of_a_stream(captured, tracer):
    """A generator runs only when it is read."""
    stream = rag_chain().stream(QUESTION, captured.config)
    with tracer.start_as_current_span("request") as span:
        list(stream)

    assert anchored(captured.record()) == current(span)


def test_a_span_that_is_made_inside_the_chain_is_not_the_answers(captured, tracer):
    def observed(question):
        with tracer.start_as_current_span("inner"):
            return rag_chain().invoke(question)

    with tracer.start_as_current_span("request") as span:
        ((lambda question: question) | rag_chain().with_config(run_name="x") | observed).invoke(
            QUESTION, captured.config
        )

    assert anchored(captured.record()) == current(span)


# The calls of a judge


def test_what_runs_under_suppressed_instrumentation_is_not_captured(captured):
    with suppressed():
        rag_chain().invoke(QUESTION, captured.config)

    assert captured.answers() == []


# Beside other tracing


@pytest.fixture
def instrumented(application):
    """ragspan is attached to every call, as by `opentelemetry-instrument`."""
    instrumentor = RagspanLangChainInstrumentor()
    instrumentor.instrument(sink=application.engine)
    yield instrumentor
    instrumentor.uninstrument()


def consume(chain, question, config):
    for _ in chain.stream(question, config):
        pass


async def consume_asynchronously(chain, question, config):
    async for _ in chain.astream(question, config):
        pass


@pytest.fixture
def ask():
    chain = rag_chain().with_config(run_name="rivers")
    return lambda application: chain.invoke(QUESTION, config_for(application.engine))


class TestTracedAlready(TracedAlready):
    """Chains."""

    openinference = LangChainInstrumentor
    root = workflow = "rivers"


# Beside OpenInference: the answer's span is that of the root run


CALLS = {
    "invoke": lambda chain, config: chain.invoke(QUESTION, config),
    "stream": lambda chain, config: consume(chain, QUESTION, config),
    "ainvoke": lambda chain, config: asyncio.run(chain.ainvoke(QUESTION, config)),
    "astream": lambda chain, config: asyncio.run(consume_asynchronously(chain, QUESTION, config)),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_the_score_of_a_call_inside_a_request(application, openinference, call):
    with application.tracer.start_as_current_span("POST /ask") as request:
        call(rag_chain().with_config(run_name="rivers"), config_for(application.engine))

    assert application.scored_spans() == ["rivers"]
    assert ids(application.span("rivers"))[0] == request.get_span_context().trace_id
    assert application.span("rivers").parent.span_id == request.get_span_context().span_id


BATCHES = {
    "batch": lambda chain, config: chain.batch(["A pump?", "A filter?", "A motor?"], config),
    "abatch": lambda chain, config: asyncio.run(chain.abatch(["A pump?", "A filter?", "A motor?"], config)),
}


@pytest.mark.parametrize("batch", BATCHES.values(), ids=BATCHES)
def test_each_score_of_a_batch_is_below_its_own_run(application, openinference, batch):
    batch(rag_chain(TopicRetriever()).with_config(run_name="rivers"), config_for(application.engine))

    assert application.scored_spans() == ["rivers"] * 3
    assert len({score.parent.span_id for score in application.spans(SCORE)}) == 3


def test_the_score_of_an_agent(application, openinference):
    search_agent(calls(search("pump")), ANSWER, name="librarian").invoke(
        user_says(QUESTION), config_for(application.engine)
    )

    assert application.scored_spans() == ["librarian"]


def test_a_chain_without_any_inner_run(application, openinference):
    """OpenInference is told of it after us, and there is no further event at which its span could be looked for."""

    def answer(_question):
        ragspan.record_contexts([PUMP])
        return ANSWER

    RunnableLambda(answer).invoke(QUESTION, config_for(application.engine))

    assert application.scored_spans() == ["answer"]


def test_a_stream_whose_reader_leaves_belongs_to_its_run(application, openinference):
    stream = rag_chain().with_config(run_name="rivers").stream(QUESTION, config_for(application.engine))
    next(stream)
    stream.close()

    assert [outcome.reason for outcome in application.outcomes()] == ["answer_aborted"]
    assert application.targets() == [ids(application.span("rivers"))]
    assert application.drawn_by_ragspan() == []


# However the handler is attached


@pytest.mark.parametrize("order", [("openinference", "instrumented"), ("instrumented", "openinference")], ids="-".join)
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_both_instrumentors_in_either_order(request, application, order, call):
    for fixture in order:
        request.getfixturevalue(fixture)
    call(rag_chain().with_config(run_name="rivers"), None)

    assert application.scored_spans() == ["rivers"]
    assert all(span is not None for span in application.retrieval_spans())


# Without OpenInference: the answer's span is the one that is current


class Attaching(BaseCallbackHandler):
    """Makes a span for each run, current while it runs, as some instrumentations do."""

    run_inline = True

    def __init__(self, tracer):
        self.tracer = tracer
        self.open = {}

    def on_chain_start(self, serialized, inputs, *, run_id, name=None, **_):
        span = self.tracer.start_span(name)
        self.open[run_id] = span, context.attach(set_span_in_context(span))

    def on_chain_end(self, outputs, *, run_id, **_):
        span, token = self.open.pop(run_id)
        context.detach(token)
        span.end()


@pytest.mark.parametrize("inside", [False, True], ids=["a request of its own", "inside a request"])
def test_an_instrumentation_that_makes_its_spans_current(application, inside):
    """Told of a run before us, it has made the run's span current by then."""
    config = {"callbacks": [Attaching(application.tracer), *config_for(application.engine)["callbacks"]]}
    chain = answer_chain().with_config(run_name="rivers")
    inputs = {"context": PUMP, "question": QUESTION}
    if inside:
        with application.tracer.start_as_current_span("POST /ask"):
            chain.invoke(inputs, config)
    else:
        chain.invoke(inputs, config)

    assert application.targets() == [ids(application.span("rivers"))]


# From the environment


def test_the_environment_asks_for_nothing_but_scores(openinference, application):
    providers = EnvironmentProviders(
        tracer_provider=application.provider, meter_provider=MeterProvider(), logger_provider=None
    )
    settings = Settings.from_environment({"RAGSPAN_SPANS": "scores", "RAGSPAN_METRICS": "faithfulness"})
    with engine_from(settings, providers) as engine:
        config = {"callbacks": [RagspanCallbackHandler(sink=engine)]}
        rag_chain().with_config(run_name="rivers").invoke(QUESTION, config)
        assert engine.flush(timeout=60)

    score = application.span("evaluation faithfulness")
    assert score.parent.span_id == application.span("rivers").context.span_id
    assert application.drawn_by_ragspan() == ["evaluation faithfulness"]


# The spans of the searches


def test_each_of_several_searches_knows_its_own_span(application, openinference):
    search_agent(calls(search("pump"), search("filter")), ANSWER).invoke(
        user_says(QUESTION), config_for(application.engine)
    )

    spans = application.retrieval_spans()
    assert len(spans) == 2
    assert set(spans) == {ids(span) for span in application.spans("TopicRetriever")}


def test_a_search_that_fails_knows_its_span(application, openinference):
    with pytest.raises(ConnectionError):
        rag_chain(FailingRetriever()).invoke(QUESTION, config_for(application.engine))

    assert application.retrieval_spans() == [ids(application.span("FailingRetriever"))]


def test_a_search_inside_a_capture_block_knows_its_span(application, openinference):
    with ragspan.capture(question=QUESTION, sink=application.engine) as answer:
        rag_chain().invoke(QUESTION, config_for(application.engine))
        answer.response = ANSWER

    assert application.retrieval_spans() == [ids(application.span("FixedRetriever"))]


def test_openinference_that_no_longer_instruments_is_not_asked(application, openinference, capsys):
    """It would print a complaint."""
    openinference.uninstrument()
    rag_chain().invoke(QUESTION, config_for(application.engine))

    assert application.retrieval_spans() == [None]
    assert capsys.readouterr().out == ""
