"""The span under which an answer belongs."""

from __future__ import annotations

import asyncio

import pytest
from captures import Answered
from openinference.instrumentation.langchain import LangChainInstrumentor
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import TraceState
from rag_programs import ANSWER, FOUND, QUESTION, rag_chain

from ragspan.telemetry.suppress import suppressed

COMPLETE = Answered(QUESTION, FOUND, ANSWER)


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


@pytest.fixture
def openinference(tracer_provider):
    """OpenInference instruments LangChain too."""
    instrumentor = LangChainInstrumentor()
    instrumentor.instrument(tracer_provider=tracer_provider)
    yield instrumentor
    instrumentor.uninstrument()


def ids(span):
    context = span.get_span_context()
    return context.trace_id, context.span_id


def anchored(record):
    return record.parent.trace_id, record.parent.span_id


def run_span(exporter, name="RunnableSequence"):
    (span,) = [span for span in exporter.get_finished_spans() if span.name == name and span.parent is None]
    return span


def test_no_span_is_current(captured):
    rag_chain().invoke(QUESTION, captured.config)

    assert captured.record().parent is None


def test_the_span_that_is_current_at_the_call(captured, tracer):
    with tracer.start_as_current_span("request") as span:
        rag_chain().invoke(QUESTION, captured.config)

    assert anchored(captured.record()) == ids(span)


def test_a_span_that_is_not_sampled(captured):
    context = trace.SpanContext(
        trace_id=1, span_id=2, is_remote=True, trace_flags=trace.TraceFlags(0), trace_state=TraceState([("a", "b")])
    )
    with trace.use_span(trace.NonRecordingSpan(context)):
        rag_chain().invoke(QUESTION, captured.config)

    parent = captured.record().parent
    assert (parent.trace_id, parent.span_id, parent.sampled, parent.is_remote) == (1, 2, False, True)
    assert parent.trace_state == "a=b"


def test_the_span_of_the_reader_of_a_stream(captured, tracer):
    """A generator runs only when it is read."""
    stream = rag_chain().stream(QUESTION, captured.config)
    with tracer.start_as_current_span("request") as span:
        list(stream)

    assert anchored(captured.record()) == ids(span)


async def test_each_of_many_requests_has_its_own_span(captured, tracer):
    async def ask(number):
        with tracer.start_as_current_span(f"request {number}") as span:
            await rag_chain().ainvoke(f"{number}?", captured.config)
        return f"{number}?", ids(span)

    spans = dict(await asyncio.gather(*(ask(number) for number in range(20))))

    assert {record.question: anchored(record) for record in captured.records()} == spans


def test_a_span_that_is_made_inside_the_chain_is_not_the_answers(captured, tracer):
    def observed(question):
        with tracer.start_as_current_span("inner"):
            return rag_chain().invoke(question)

    with tracer.start_as_current_span("request") as span:
        ((lambda question: question) | rag_chain().with_config(run_name="x") | observed).invoke(
            QUESTION, captured.config
        )

    assert anchored(captured.record()) == ids(span)


def test_the_handler_makes_no_span(captured, tracer, exporter):
    with tracer.start_as_current_span("request"):
        rag_chain().invoke(QUESTION, captured.config)

    assert [span.name for span in exporter.get_finished_spans()] == ["request"]


# Beside OpenInference


@pytest.mark.parametrize("call", ["invoke", "stream"])
def test_the_run_span_of_openinference(captured, openinference, exporter, call):
    list(getattr(rag_chain(), call)(QUESTION, captured.config))

    record = captured.record()
    assert Answered.of(record) == COMPLETE
    assert anchored(record) == ids(run_span(exporter))


async def test_the_run_span_of_openinference_in_asynchronous_code(captured, openinference, exporter):
    await rag_chain().ainvoke(QUESTION, captured.config)

    assert anchored(captured.record()) == ids(run_span(exporter))


def test_the_run_span_of_openinference_under_a_current_span(captured, openinference, tracer, exporter):
    with tracer.start_as_current_span("request") as request:
        rag_chain().invoke(QUESTION, captured.config)

    (span,) = [
        span
        for span in exporter.get_finished_spans()
        if span.name == "RunnableSequence" and span.parent and span.parent.span_id == ids(request)[1]
    ]
    assert anchored(captured.record()) == ids(span)


def test_a_handler_that_is_bound_beside_openinference(captured, openinference, exporter):
    rag_chain().with_config(captured.config).invoke(QUESTION)

    assert anchored(captured.record()) == ids(run_span(exporter))


def test_each_of_a_batch_beside_openinference(captured, openinference, exporter):
    rag_chain().batch(["One?", "Two?", "Three?"], captured.config)

    spans = {ids(span) for span in exporter.get_finished_spans() if span.parent is None}
    assert {anchored(record) for record in captured.records()} == spans
    assert len(spans) == 3


def test_openinference_that_no_longer_instruments(captured, openinference, tracer):
    openinference.uninstrument()
    with tracer.start_as_current_span("request") as span:
        rag_chain().invoke(QUESTION, captured.config)

    assert anchored(captured.record()) == ids(span)


# The calls of a judge


def test_what_runs_under_suppressed_instrumentation_is_not_captured(captured):
    with suppressed():
        rag_chain().invoke(QUESTION, captured.config)

    assert captured.answers() == []
