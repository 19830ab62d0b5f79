"""Between ragspan and the program: what goes wrong on our side stays there."""

import logging

import pytest
from rag_programs import ANSWER, QUESTION, rag_chain

from ragspan import ConfigurationError, ScoringEngine
from ragspan.defaults import set_default_engine
from ragspan.metrics import Faithfulness
from ragspan.testing import FakeJudge, RecordingEmitter, RecordingSink
from ragspan_langchain import RagspanCallbackHandler


class BrokenSink:
    """Breaks its promise never to raise, and counts what it is told."""

    def __init__(self):
        self.errors = []

    def submit(self, capture):
        raise ConnectionError("secret")

    def count_error(self, place):
        self.errors.append(place)


def test_an_error_in_a_callback_is_counted_and_logged_by_its_type_and_the_answer_comes(caplog):
    sink = BrokenSink()
    with caplog.at_level(logging.WARNING):
        answer = rag_chain().invoke(QUESTION, config={"callbacks": [RagspanCallbackHandler(sink=sink)]})

    assert answer == ANSWER
    assert sink.errors == ["callback"]
    assert "ConnectionError" in caplog.text
    assert "secret" not in caplog.text


def test_the_engine_counts_errors_in_callbacks():
    with ScoringEngine(metrics=[]) as engine:
        engine.count_error("callback")

        assert dict(engine.stats().errors) == {"callback": 1}


def test_a_chain_is_scored_by_an_engine_as_users_set_it_up():
    seen = RecordingEmitter()
    with ScoringEngine(metrics=[Faithfulness(FakeJudge())], emitters=[seen]) as engine:
        rag_chain().invoke(QUESTION, config={"callbacks": [RagspanCallbackHandler(sink=engine)]})

        assert engine.flush(timeout=10)

    (scored,) = seen.scored
    assert scored.record.question == QUESTION
    assert scored.outcomes["faithfulness"].value == 1.0


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
