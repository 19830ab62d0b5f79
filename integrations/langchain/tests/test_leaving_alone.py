"""What the handler must leave alone and let go of; the hazards of the conformance suite show most of it."""

from __future__ import annotations

import pytest
from captures import Answered
from langchain_core.runnables import RunnableLambda
from rag_programs import PUMP, QUESTION, FixedRetriever, documents, join_texts, rag_chain

from ragspan import ConfigurationError
from ragspan.defaults import set_default_engine
from ragspan.testing import RecordingSink
from ragspan_langchain import RagspanCallbackHandler


def test_a_generator_in_the_input_is_not_read(captured):
    rows = iter(["one", "two"])
    program = RunnableLambda(lambda fields: ", ".join(fields["rows"]))

    assert program.invoke({"question": QUESTION, "rows": rows}, captured.config) == "one, two"
    assert captured.answers() == [Answered(QUESTION, [], "one, two")]


def test_the_same_document_object_in_every_answer(captured):
    """Some retrievers return the very documents that they keep; one request's changes are that request's."""
    kept = documents(PUMP)

    def shout(found):
        found[0].page_content = found[0].page_content.upper()
        return join_texts(found)

    rag_chain(FixedRetriever(result=kept)).invoke(QUESTION, captured.config)
    rag_chain(FixedRetriever(result=kept), formatter=shout).invoke(QUESTION, captured.config)

    assert [answer.contexts for answer in captured.answers()] == [[PUMP], [PUMP.upper()]]


# Between ragspan and the program


@pytest.fixture
def default_engine():
    """Lets a test make the engine that handlers use when they are given none."""
    before = set_default_engine(None)
    yield
    made = set_default_engine(before)
    if made is not None:
        made.shutdown(timeout=5)


@pytest.mark.usefixtures("default_engine")
def test_a_handler_without_a_sink_takes_the_default_engine():
    import ragspan

    rag_chain().invoke(QUESTION, config={"callbacks": [RagspanCallbackHandler()]})

    assert ragspan.default_engine().flush(timeout=10)
    assert ragspan.default_engine().stats().scored == 1


@pytest.mark.usefixtures("default_engine")
def test_a_wrong_variable_is_an_error_when_the_handler_is_made(monkeypatch):
    monkeypatch.setenv("RAGSPAN_DROP", "random")

    with pytest.raises(ConfigurationError, match="RAGSPAN_DROP is 'random'"):
        RagspanCallbackHandler()


@pytest.mark.usefixtures("default_engine")
def test_turned_off_the_handler_is_not_even_called(monkeypatch):
    monkeypatch.setenv("RAGSPAN_ENABLED", "false")
    handler = RagspanCallbackHandler()

    rag_chain().invoke(QUESTION, config={"callbacks": [handler]})

    assert handler.ignore_chain
    assert handler.recorder.requests.sink.stats().submitted == 0


@pytest.mark.parametrize("sink", [5, RecordingSink])
def test_a_sink_that_takes_no_records_is_refused_at_once(sink):
    with pytest.raises(
        ConfigurationError, match="should be a ScoringEngine, another object with a method submit, or None"
    ):
        RagspanCallbackHandler(sink=sink)
