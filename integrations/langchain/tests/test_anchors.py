"""The span under which an answer belongs; `test_traced_already` has the same beside OpenInference."""

from __future__ import annotations

import pytest
from rag_programs import QUESTION, rag_chain
from traced_alike import Anchored, anchored, current

from ragspan.telemetry.otel_context import suppressed
from ragspan.testing import InMemoryTelemetry


@pytest.fixture
def telemetry():
    return InMemoryTelemetry()


@pytest.fixture
def tracer(telemetry):
    return telemetry.tracer_provider.get_tracer("application")


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
