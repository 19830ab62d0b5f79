"""Scores of an application that is traced already: on the trace that is there, below the answer's span, drawn once."""

from __future__ import annotations

import pytest
from captures import Answered
from li_programs import ANSWER, CELLO, HARP, QUESTION, answer_of, engine
from openinference.instrumentation.llama_index import LlamaIndexInstrumentor
from opentelemetry.sdk.trace import TracerProvider

from ragspan_llama_index import RagspanLlamaIndexInstrumentor

QUERY = "RetrieverQueryEngine.query"
COMPLETE = Answered(QUESTION, [CELLO, HARP], ANSWER)


@pytest.fixture(params=["attached before", "attached after"])
def beside_openinference(request, application, handle):
    """OpenInference traces the application, and a handler was attached before or after it."""
    instrumentor = LlamaIndexInstrumentor()
    if request.param == "attached before":
        handle(application)
    instrumentor.instrument(tracer_provider=application.provider)
    if request.param == "attached after":
        handle(application)
    yield application
    if instrumentor.is_instrumented_by_opentelemetry:
        instrumentor.uninstrument()


CALLS = {
    "query": (lambda: engine().query(QUESTION), QUERY),
    "streamed aquery": (lambda: answer_of(engine, QUESTION, "streamed aquery"), "RetrieverQueryEngine.aquery"),
}


each_call = pytest.mark.parametrize(("call", "root"), CALLS.values(), ids=CALLS)


# Beside OpenInference: the answer's span is that of the root


@each_call
def test_the_score_of_a_call(beside_openinference, call, root):
    call()

    assert beside_openinference.answers() == [COMPLETE]
    assert beside_openinference.scored_spans() == [root]
    assert beside_openinference.span(root).parent is None


# Both by instrumentors, in either order


@pytest.mark.parametrize("first", ["openinference", "ragspan"])
def test_both_instrumentors(application, first):
    theirs, ours = LlamaIndexInstrumentor(), RagspanLlamaIndexInstrumentor()
    attach = [
        lambda: theirs.instrument(tracer_provider=application.provider),
        lambda: ours.instrument(sink=application.engine),
    ]
    for instrument in attach if first == "openinference" else reversed(attach):
        instrument()
    try:
        engine().query(QUESTION)
    finally:
        ours.uninstrument()
        theirs.uninstrument()

    assert application.scored_spans() == [QUERY]


# The spans of searches


@pytest.mark.parametrize("mode", ["compact", "refine", "tree_summarize", "simple_summarize"])
def test_the_model_of_a_streamed_answer_is_told_beside_openinference(captured, mode):
    """OpenInference reads a stream in a context of its own, where nothing tells which stream it is."""
    instrumentor = LlamaIndexInstrumentor()
    instrumentor.instrument(tracer_provider=TracerProvider())
    try:
        assert "".join(engine(streaming=True, response_mode=mode).query(QUESTION).response_gen) == ANSWER
    finally:
        instrumentor.uninstrument()

    assert len(captured.record().generations) == (2 if mode == "refine" else 1)  # one for each of two passages
