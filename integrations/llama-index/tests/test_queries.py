"""One question to one query engine."""

from __future__ import annotations

import time

import llama_index.core.instrumentation as instrument
import pytest
from captures import Answered
from li_model import CompletionModel
from li_programs import (
    ANSWER,
    CELLO,
    HARP,
    QUESTION,
    answer_of,
    each_way,
    engine,
    engine_over,
    ids,
    index,
    node,
    retriever,
)
from llama_index.core import PromptTemplate, Settings, SummaryIndex, get_response_synthesizer
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import QueryBundle
from llama_index_instrumentation.dispatcher import instrument_tags
from pydantic import BaseModel

COMPLETE = Answered(QUESTION, [CELLO, HARP], ANSWER)


class Strings(BaseModel):
    count: int


@each_way
def test_a_query(captured, way):
    assert answer_of(engine, QUESTION, way) == ANSWER
    assert captured.answers() == [COMPLETE]


def test_a_query_of_an_index(captured):
    index().as_query_engine(similarity_top_k=2).query(QUESTION)

    assert captured.answers() == [COMPLETE]


@pytest.mark.parametrize("bundle", [False, True])
@pytest.mark.parametrize("by_keyword", [False, True])
def test_a_question_in_any_form(captured, bundle, by_keyword):
    """A bundle may hold other texts for the search, such as an invented answer; the question is the user's."""
    asked = QueryBundle(QUESTION, custom_embedding_strs=["forty-seven strings"]) if bundle else QUESTION
    engine().query(str_or_query_bundle=asked) if by_keyword else engine().query(asked)

    assert captured.answers() == [COMPLETE]


def test_an_empty_question(captured):
    engine().query("")

    assert captured.answers() == [Answered("", [CELLO, HARP], ANSWER)]


def test_one_record_for_each_question(captured):
    asked = engine()
    for number in range(3):
        asked.query(f"{number}?")

    assert captured.answers() == [Answered(f"{number}?", [CELLO, HARP], ANSWER) for number in range(3)]


def test_a_model_that_only_completes(captured):
    Settings.llm = CompletionModel(text="Four.")
    engine().query(QUESTION)

    assert captured.answers() == [Answered(QUESTION, [CELLO, HARP], "Four.")]


@pytest.mark.parametrize("way", ["query", "aquery"])
@pytest.mark.parametrize(
    "options",
    [
        {"output_cls": Strings, "llm": CompletionModel(text='{"count": 4}')},
        {"llm": CompletionModel(text='{"count": 4}').as_structured_llm(Strings)},
    ],
    ids=["class", "structured model"],
)
def test_an_answer_of_a_class_of_the_applications_is_recorded_as_json(captured, options, way):
    answer_of(lambda: engine("cello", **options), QUESTION, way)

    assert captured.answers() == [Answered(QUESTION, [CELLO], '{"count":4}')]


def test_a_prompt_of_the_applications_own(captured, model):
    template = PromptTemplate("{context_str}\n\nIn one word: {query_str}")
    engine(text_qa_template=template).query(QUESTION)

    assert "In one word" in model.prompts[-1]
    assert captured.answers() == [COMPLETE]


@pytest.mark.parametrize("way", ["query", "aquery"])
def test_nothing_was_found(captured, model, way):
    answer_of(lambda: engine_over(SummaryIndex([]).as_retriever()), QUESTION, way)

    assert model.prompts == []
    assert captured.answers() == [Answered(QUESTION, [], "Empty Response")]


def test_a_retriever_without_embeddings(captured):
    bm25 = pytest.importorskip("llama_index.retrievers.bm25", reason="its PyStemmer cannot be had for Python 3.14")
    source = bm25.BM25Retriever.from_defaults(nodes=[node("cello"), node("oboe")], similarity_top_k=1)
    engine_over(source).query("cello strings")

    assert captured.answers() == [Answered("cello strings", [CELLO], ANSWER)]


def test_an_engine_that_was_built_before_the_handler(new_captures):
    asked = index().as_query_engine(similarity_top_k=2)
    asked.query("Before")
    captured = new_captures()
    asked.query(QUESTION)

    assert captured.answers() == [COMPLETE]


# Around the engine


def test_a_span_of_the_application_around_the_query_is_no_request(captured):
    @instrument.get_dispatcher("shop.endpoints").span
    def endpoint(text):
        return str(engine().query(f"Please: {text}"))

    endpoint("strings")

    assert captured.answers() == [Answered("Please: strings", [CELLO, HARP], ANSWER)]


async def test_an_asynchronous_span_of_the_application_around_two_queries(captured):
    """Two requests, even though one call of the application asks both."""

    @instrument.get_dispatcher("shop.endpoints").span
    async def endpoint():
        await engine().aquery("One?")
        await engine().aquery("Two?")

    await endpoint()

    assert [answer.question for answer in captured.answers()] == ["One?", "Two?"]


def test_a_subclass_of_an_engine(captured):
    class ShoutingEngine(RetrieverQueryEngine):
        def _query(self, query_bundle):
            response = super()._query(query_bundle)
            response.response = response.response.upper()
            return response

    ShoutingEngine(retriever(), get_response_synthesizer()).query(QUESTION)

    assert captured.answers() == [Answered(QUESTION, [CELLO, HARP], ANSWER.upper())]


# The rest of the record


def test_the_record_says_what_answered(captured):
    engine().query(QUESTION)

    record = captured.record()
    assert (record.framework, record.name) == ("llama_index", "RetrieverQueryEngine")


def test_the_record_says_when(captured):
    before = time.time_ns()
    engine().query(QUESTION)
    after = time.time_ns()

    record = captured.record()
    assert before <= record.started_ns < record.ended_ns <= after


def test_the_record_holds_the_search(captured):
    index().as_query_engine(similarity_top_k=2).query(QUESTION)

    (search,) = captured.record().retrievals
    assert (search.name, search.query, search.error_type) == ("VectorIndexRetriever", QUESTION, None)
    assert ids(search.contexts) == ["cello", "harp"]
    assert [passage.rank for passage in search.contexts] == [0, 1]
    assert search.started_ns <= search.ended_ns


def test_the_record_holds_the_call_of_the_model(captured):
    engine().query(QUESTION)

    record = captured.record()
    (call,) = record.generations
    assert (call.model, call.error_type) == ("scripted", None)
    assert record.started_ns <= call.started_ns <= call.ended_ns <= record.ended_ns


def test_tags_of_the_application_are_with_the_record(captured):
    with instrument_tags({"tenant": "orchestra"}):
        engine().query(QUESTION)

    assert captured.record().metadata["tenant"] == "orchestra"


def test_a_record_is_its_captures_text_whenever_it_is_made(captured):
    """A capture becomes a record later, when the application may have changed all that it refers to."""
    response = engine().query(QUESTION)
    response.response = "changed"
    for source in response.source_nodes:
        source.node.text = "changed"
        source.node.metadata["book"] = "changed"
        source.score = 7.0
    response.source_nodes.clear()

    record = captured.record()
    assert Answered.of(record) == COMPLETE
    assert [context.score for context in record.contexts] == [1.0, 0.9]
