"""The span under which an answer belongs, and OpenInference at its side."""

from __future__ import annotations

import gc

import pytest
from captures import Answered
from li_agents import agent, ask
from li_chats import chat_engine
from li_model import calls, first_tokens
from li_programs import (
    ANSWER,
    CELLO,
    HARP,
    QUESTION,
    engine,
    engine_tool,
    token_by_token,
)
from openinference.instrumentation.llama_index import LlamaIndexInstrumentor
from traced_alike import Anchored, anchored, current


@pytest.fixture
def asked(captured):
    def ask(question):
        engine().query(question)
        return captured.record()

    return ask


@pytest.fixture
def aask():
    return lambda question: engine().aquery(question)


class TestAnchored(Anchored):
    """Of engines."""


def test_the_span_that_is_current_when_a_stream_is_asked_for(captured, tracer):
    """Whatever is current when it is read."""
    with tracer.start_as_current_span("request") as span:
        response = engine(streaming=True).query(QUESTION)
    with tracer.start_as_current_span("reader"):
        list(response.response_gen)

    assert anchored(captured.record()) == current(span)


async def test_the_span_that_is_current_when_an_agent_is_started(captured, model, tracer):
    model.says(calls("search", input="cello"), ANSWER, "In the end.")
    with tracer.start_as_current_span("request") as span:
        await ask(agent(engine_tool("search")), QUESTION)

    assert anchored(captured.record()) == current(span)


def test_a_chat_whose_thread_goes_on_after_the_span(captured, tracer):
    with tracer.start_as_current_span("request") as span:
        response = chat_engine("context").stream_chat("The cello?")
    list(response.response_gen)

    assert anchored(captured.record()) == current(span)


# Beside OpenInference


@pytest.fixture(params=["attached before", "attached after"])
def beside_openinference(request, new_captures, telemetry):
    """A handler and OpenInference's instrumentor, in either order."""
    instrumentor = LlamaIndexInstrumentor()
    first = new_captures() if request.param == "attached after" else None
    instrumentor.instrument(tracer_provider=telemetry.tracer_provider)
    yield first or new_captures()
    instrumentor.uninstrument()


@pytest.mark.parametrize("mode", [pytest.param("compact", marks=token_by_token), "tree_summarize"])
def test_a_stream_that_is_left(beside_openinference, mode):
    response_gen = engine(streaming=True, response_mode=mode).query(QUESTION).response_gen
    next(response_gen)
    response_gen.close()
    del response_gen
    gc.collect()

    assert beside_openinference.answers() == [Answered(QUESTION, [CELLO, HARP], first_tokens(1, ANSWER), "aborted")]


def test_a_stream_that_is_never_read(beside_openinference):
    engine(streaming=True).query(QUESTION)
    gc.collect()

    answer = beside_openinference.answer()
    assert (answer.question, answer.response or None, answer.status) == (QUESTION, None, "aborted")


def test_openinference_that_no_longer_instruments(beside_openinference, tracer):
    LlamaIndexInstrumentor().uninstrument()
    with tracer.start_as_current_span("request") as span:
        engine().query(QUESTION)

    assert anchored(beside_openinference.record()) == current(span)
