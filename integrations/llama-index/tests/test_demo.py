"""LlamaIndex's side of `ragspan demo`; the whole of it is tested with the core."""

from __future__ import annotations

import sys

import pytest
from li_programs import token_by_token

from ragspan.config import ConfigurationError
from ragspan.defaults import set_default_engine
from ragspan.demo import Asked, Manner, Way
from ragspan.demo.corpus import documentation
from ragspan.testing import RecordingSink
from ragspan_llama_index.demo import LlamaIndexDemo

QUESTION = "What happens when the queue is full?"
BATCH = (QUESTION, "What does score_wait do?", "Which answers are not judged when sampling?")


@pytest.fixture
def sink():
    """Takes what handlers without a sink of their own capture."""
    taking = RecordingSink()
    before = set_default_engine(taking)
    yield taking
    set_default_engine(before)


@pytest.fixture
def demo(sink):
    made = LlamaIndexDemo(passages=documentation(), model=None)
    yield made
    made.handler.detach()


def ask(demo, *questions, way=Way.INVOKE, manner=Manner.GOOD):
    return demo.answer(Asked(questions=questions or (QUESTION,), way=way, manner=manner))


@pytest.mark.parametrize("way", [Way.INVOKE, Way.STREAM, Way.ASTREAM, Way.AGENT])
def test_every_way_of_asking_gives_an_answer_from_the_documentation_and_its_record(demo, sink, way):
    [answer] = ask(demo, way=way)

    [record] = sink.records()
    assert "queue_size" in answer
    assert (record.question, record.response, record.status) == (QUESTION, answer, "complete")
    assert record.contexts[0].source == "operations.md"
    assert "queue_size" in record.contexts[0].text
    assert len(record.generations) == (2 if way is Way.AGENT else 1)


def test_questions_at_once_have_a_record_each(demo, sink):
    answers = ask(demo, *BATCH, way=Way.BATCH)

    assert {record.question: record.response for record in sink.records()} == dict(zip(BATCH, answers, strict=True))


@token_by_token
def test_a_stream_that_is_closed_early_is_aborted(demo, sink):
    [read] = ask(demo, way=Way.CLOSED_EARLY)

    [record] = sink.records()
    assert len(read.split()) == 12
    assert (record.response, record.status) == (read, "aborted")


@pytest.mark.parametrize(
    ("manner", "begins"),
    [(Manner.REFUSED, "I cannot answer that"), (Manner.UNGROUNDED, "Every score is checked by 12 reviewers")],
)
def test_the_model_answers_in_the_manner_that_it_is_told(demo, manner, begins):
    [answer] = ask(demo, manner=manner)

    assert answer.startswith(begins)


def test_what_is_no_name_of_a_model_is_refused():
    with pytest.raises(ConfigurationError, match="--model is 'gpt-4o', but should be 'openai:<name>'"):
        LlamaIndexDemo(passages=[], model="gpt-4o")


def test_a_real_model_without_its_package_is_an_error_that_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "llama_index.llms.openai", None)

    with pytest.raises(ConfigurationError, match="pip install llama-index-llms-openai"):
        LlamaIndexDemo(passages=[], model="openai:gpt-4o")
