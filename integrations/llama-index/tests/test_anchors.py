"""The span under which an answer belongs, and OpenInference at its side."""

from __future__ import annotations

from li_agents import agent, ask
from li_model import calls
from li_programs import (
    ANSWER,
    QUESTION,
    engine,
    engine_tool,
)
from traced_alike import anchored, current


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


# Beside OpenInference
