"""Engines that the application writes itself."""

from __future__ import annotations

import pytest
from captures import Answered
from li_programs import (
    ANSWER,
    CELLO,
    HARP,
    OBOE,
    QUESTION,
    answer_of,
    answers,
    ask_model,
    engine,
    ids,
    retriever,
    topic_engine,
)
from llama_index.core.base.response.schema import Response
from llama_index.core.query_engine import CustomQueryEngine
from llama_index.core.schema import QueryBundle


class OwnPrompt(CustomQueryEngine):
    """Searches, writes its own prompt and returns a bare string."""

    def custom_query(self, query_str):
        passages = retriever().retrieve(query_str)
        return ask_model("\n".join(passage.get_content() for passage in passages))


@pytest.mark.parametrize("way", ["query", "aquery"])
@pytest.mark.parametrize("asked", [QUESTION, QueryBundle(QUESTION)], ids=["text", "bundle"])
def test_an_engine_with_a_prompt_of_its_own(captured, way, asked):
    """It has no asynchronous method."""
    answer_of(OwnPrompt, asked, way)

    record = captured.record()
    assert (record.question, record.response, record.status) == (QUESTION, ANSWER, "complete")
    assert ids(record.contexts) == ["cello", "harp"]


def test_an_engine_that_asks_another(captured):
    class Polite(CustomQueryEngine):
        def custom_query(self, query_str):
            return f"Gladly: {topic_engine().query(f'{query_str} (the oboe)')}"

    Polite().query("And that one?")

    assert captured.answers() == [Answered("And that one?", [OBOE], f"Gladly: {ANSWER}")]


@answers(
    Answered(QUESTION, [CELLO, HARP], "The cello has four. The harp has more."),
    said=["The cello has four.", "The harp has more."],
)
def test_an_engine_that_asks_several_others(query):
    """All that they found reached the answer, in the order of the searches."""
    return f"{engine('cello').query('Cello?')} {engine('harp').query('Harp?')}"


@answers(Answered(QUESTION, [], ANSWER))
def test_an_engine_that_returns_sources_which_its_model_never_saw(query_str):
    return Response(ask_model(query_str), source_nodes=retriever().retrieve(query_str))


def test_an_engine_that_passes_the_stream_of_another_on(captured):
    class Passing(CustomQueryEngine):
        def custom_query(self, query_str):
            return engine(streaming=True).query(f"Rewritten: {query_str}")

    list(Passing().query(QUESTION).response_gen)

    assert captured.answers() == [Answered(QUESTION, [CELLO, HARP], ANSWER)]
