"""One question to one query engine."""

from __future__ import annotations

import pytest
from captures import Answered
from li_model import CompletionModel
from li_programs import ANSWER, CELLO, HARP, QUESTION, answer_of, each_way, engine, engine_over
from llama_index.core import SummaryIndex
from llama_index.core.schema import QueryBundle
from llama_index_instrumentation.dispatcher import instrument_tags
from pydantic import BaseModel

COMPLETE, FOUR = Answered(QUESTION, [CELLO, HARP], ANSWER), '{"count":4,"of":"Célo"}'


class Strings(BaseModel):
    count: int
    of: str


@each_way
def test_a_query(captured, way):
    assert answer_of(engine, QUESTION, way) == ANSWER
    assert captured.answers() == [COMPLETE]


@pytest.mark.parametrize("bundle", [False, True])
@pytest.mark.parametrize("by_keyword", [False, True])
def test_a_question_in_any_form(captured, bundle, by_keyword):
    """A bundle may hold other texts for the search, such as an invented answer; the question is the user's."""
    asked = QueryBundle(QUESTION, custom_embedding_strs=["forty-seven strings"]) if bundle else QUESTION
    engine().query(str_or_query_bundle=asked) if by_keyword else engine().query(asked)

    assert captured.answers() == [COMPLETE]


@pytest.mark.parametrize("way", ["query", "aquery"])
@pytest.mark.parametrize(
    "options",
    [
        {"output_cls": Strings, "llm": CompletionModel(text=FOUR)},
        {"llm": CompletionModel(text=FOUR).as_structured_llm(Strings)},
    ],
    ids=["class", "structured model"],
)
def test_an_answer_of_a_class_of_the_applications_is_recorded_as_json(captured, options, way):
    answer_of(lambda: engine("cello", **options), QUESTION, way)

    assert captured.answers() == [Answered(QUESTION, [CELLO], FOUR)]


@pytest.mark.parametrize("way", ["query", "aquery"])
def test_nothing_was_found(captured, model, way):
    answer_of(lambda: engine_over(SummaryIndex([]).as_retriever()), QUESTION, way)

    assert model.prompts == []
    assert captured.answers() == [Answered(QUESTION, [], "Empty Response")]


# The rest of the record


def test_tags_of_the_application_are_with_the_record(new_captures):
    captured = new_captures()
    with instrument_tags({"tenant": "orchestra"}):
        engine().query(QUESTION)
    with instrument_tags({"tenant": "orchestra", "floor": 2, "row": 3}):
        engine().query(QUESTION)

    one, three = captured.sink.captures
    assert three.parts == one.parts + 3 * 2
    assert [record.metadata["tenant"] for record in captured.records()] == ["orchestra"] * 2
