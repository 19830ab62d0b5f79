"""What the handler must leave alone and let go of; the hazards of the conformance suite show most of it."""

from __future__ import annotations

import gc
import logging
import types
import weakref
from typing import Any

import pytest
from captures import Answered
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda
from rag_programs import (
    ANSWER,
    FOUND,
    PUMP,
    QUESTION,
    FixedRetriever,
    answer_chain,
    documents,
    join_texts,
    rag_chain,
    retriever,
    texts_of,
)

from ragspan import ConfigurationError, ScoringEngine
from ragspan.defaults import set_default_engine
from ragspan.metrics import Faithfulness
from ragspan.testing import FakeJudge, RecordingEmitter, RecordingSink
from ragspan_langchain import RagspanCallbackHandler


class TracedRetriever(BaseRetriever):
    """Returns documents that nobody else holds, and remembers them weakly."""

    made: list[Any]

    def _get_relevant_documents(self, query, *, run_manager):
        found = [Document(page_content=text) for text in FOUND]
        self.made.extend(weakref.ref(document) for document in found)
        return found

    def alive(self):
        gc.collect()
        return sum(reference() is not None for reference in self.made)


def reachable_objects(handler):
    """How many objects the handler keeps alive, not counting code, classes, modules and the ids of ended runs."""
    skipped = (int, type, types.ModuleType, types.FunctionType, types.CodeType, types.FrameType, logging.Logger)
    seen = {id(handler)}
    queue = [handler]
    while queue:
        for item in gc.get_referents(queue.pop()):
            if id(item) not in seen and not isinstance(item, skipped):
                seen.add(id(item))
                queue.append(item)
    return len(seen)


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


def test_a_retriever_that_is_called_without_a_chain_gets_its_documents(captured):
    class OwnRetriever(BaseRetriever):
        def _get_relevant_documents(self, query, *, run_manager):
            return documents(*FOUND)

    assert texts_of(OwnRetriever().invoke(QUESTION, captured.config)) == FOUND
    assert texts_of(retriever().invoke(QUESTION, captured.config)) == FOUND


def test_a_capture_that_waits_to_be_scored_holds_texts_and_no_documents(captured):
    source = TracedRetriever(made=[])
    rag_chain(source).invoke(QUESTION, captured.config)

    assert source.alive() == 0
    assert captured.answer().contexts == FOUND


def test_many_requests_keep_no_more_than_few(captured):
    program = rag_chain(FixedRetriever(result=lambda: [Document(page_content=PUMP)]))
    for _ in range(20):
        program.invoke(QUESTION, captured.config)
    captured.records()
    before = reachable_objects(captured.handler)
    for _ in range(200):
        program.invoke(QUESTION, captured.config)
    captured.records()

    assert reachable_objects(captured.handler) - before <= 200


def test_batches_and_failed_requests_keep_nothing_open(captured):
    def fail_for_two(fields):
        if "2" in fields["question"]:
            raise ValueError
        return fields

    program = (
        {"question": lambda text: text, "context": retriever() | join_texts}
        | RunnableLambda(fail_for_two)
        | answer_chain()
    )
    program.batch([str(number) for number in range(10)], captured.config, return_exceptions=True)

    assert captured.handler.open_runs == 0
    assert sorted(answer.status for answer in captured.answers()) == ["complete"] * 9 + ["error"]


# Between ragspan and the program


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
