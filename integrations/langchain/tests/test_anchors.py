"""The span under which an answer belongs; `test_traced_already` has the same beside OpenInference."""

from __future__ import annotations

import asyncio

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import TraceState
from rag_programs import QUESTION, rag_chain

from ragspan.telemetry.suppress import suppressed


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


# The calls of a judge


def test_what_runs_under_suppressed_instrumentation_is_not_captured(captured):
    with suppressed():
        rag_chain().invoke(QUESTION, captured.config)

    assert captured.answers() == []
