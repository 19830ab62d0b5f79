"""The span under which an answer belongs, and OpenInference at its side."""

from __future__ import annotations

import asyncio
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
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter


@pytest.fixture
def exporter():
    return InMemorySpanExporter()


@pytest.fixture
def tracer_provider(exporter):
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return provider


@pytest.fixture
def tracer(tracer_provider):
    return tracer_provider.get_tracer("application")


def ids(span):
    context = span.get_span_context()
    return context.trace_id, context.span_id


def anchored(record):
    return record.parent.trace_id, record.parent.span_id


def test_no_span_is_current(captured):
    engine().query(QUESTION)

    assert captured.record().parent is None


def test_the_span_that_is_current_at_the_call(captured, tracer):
    with tracer.start_as_current_span("request") as span:
        engine().query(QUESTION)

    assert anchored(captured.record()) == ids(span)


def test_the_span_that_is_current_when_a_stream_is_asked_for(captured, tracer):
    """Whatever is current when it is read."""
    with tracer.start_as_current_span("request") as span:
        response = engine(streaming=True).query(QUESTION)
    with tracer.start_as_current_span("reader"):
        list(response.response_gen)

    assert anchored(captured.record()) == ids(span)


def test_a_span_that_is_not_sampled(captured):
    context = trace.SpanContext(trace_id=1, span_id=2, is_remote=True, trace_flags=trace.TraceFlags(0))
    with trace.use_span(trace.NonRecordingSpan(context)):
        engine().query(QUESTION)

    parent = captured.record().parent
    assert (parent.trace_id, parent.span_id, parent.sampled, parent.is_remote) == (1, 2, False, True)


async def test_each_of_many_requests_has_its_own_span(captured, tracer):
    async def asked(number):
        with tracer.start_as_current_span(f"request {number}") as span:
            await engine().aquery(f"{number}?")
        return f"{number}?", ids(span)

    spans = dict(await asyncio.gather(*(asked(number) for number in range(20))))

    assert {record.question: anchored(record) for record in captured.records()} == spans


async def test_the_span_that_is_current_when_an_agent_is_started(captured, model, tracer):
    model.says(calls("search", input="cello"), ANSWER, "In the end.")
    with tracer.start_as_current_span("request") as span:
        await ask(agent(engine_tool("search")), QUESTION)

    assert anchored(captured.record()) == ids(span)


def test_a_chat_whose_thread_goes_on_after_the_span(captured, tracer):
    with tracer.start_as_current_span("request") as span:
        response = chat_engine("context").stream_chat("The cello?")
    list(response.response_gen)

    assert anchored(captured.record()) == ids(span)


def test_the_handler_makes_no_span(captured, tracer, exporter):
    with tracer.start_as_current_span("request"):
        engine().query(QUESTION)

    assert [span.name for span in exporter.get_finished_spans()] == ["request"]


# Beside OpenInference


@pytest.fixture(params=["attached before", "attached after"])
def beside_openinference(request, new_captures, tracer_provider):
    """A handler and OpenInference's instrumentor, in either order."""
    instrumentor = LlamaIndexInstrumentor()
    first = new_captures() if request.param == "attached after" else None
    instrumentor.instrument(tracer_provider=tracer_provider)
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

    assert anchored(beside_openinference.record()) == ids(span)
