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
    TopicRetriever,
    ask_model,
    engine,
    found,
    ids,
    retriever,
    topic_engine,
)
from llama_index.core import Settings, get_response_synthesizer
from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.response.schema import Response, StreamingResponse
from llama_index.core.query_engine import CustomQueryEngine
from llama_index.core.schema import QueryBundle


class OwnPrompt(CustomQueryEngine):
    """Searches, writes its own prompt and returns a bare string."""

    def custom_query(self, query_str):
        passages = retriever().retrieve(query_str)
        return ask_model("\n".join(passage.get_content() for passage in passages))


class OwnSynthesis(CustomQueryEngine):
    """Searches, keeps one passage and lets a synthesizer answer."""

    def custom_query(self, query_str):
        nodes = retriever("oboe", "cello").retrieve(query_str)
        return get_response_synthesizer().synthesize(query_str, nodes[1:])

    async def acustom_query(self, query_str):
        nodes = await retriever("oboe", "cello").aretrieve(query_str)
        return await get_response_synthesizer().asynthesize(query_str, nodes[1:])


def test_an_engine_with_a_prompt_of_its_own(captured):
    OwnPrompt().query(QUESTION)

    record = captured.record()
    assert (record.question, record.response, record.status) == (QUESTION, ANSWER, "complete")
    assert ids(record.contexts) == ["cello", "harp"]


async def test_an_asynchronous_engine_without_an_asynchronous_method(captured):
    await OwnPrompt().aquery(QueryBundle(QUESTION))

    record = captured.record()
    assert (record.question, record.response) == (QUESTION, ANSWER)
    assert ids(record.contexts) == ["cello", "harp"]


def test_an_engine_that_synthesizes(captured):
    OwnSynthesis().query(QUESTION)

    assert captured.answers() == [Answered(QUESTION, [CELLO], ANSWER)]


async def test_an_asynchronous_engine_that_synthesizes(captured):
    await OwnSynthesis().aquery(QUESTION)

    assert captured.answers() == [Answered(QUESTION, [CELLO], ANSWER)]


def test_an_engine_that_asks_another(captured):
    class Polite(CustomQueryEngine):
        def custom_query(self, query_str):
            return f"Gladly: {topic_engine().query(f'{query_str} (the oboe)')}"

    Polite().query("And that one?")

    assert captured.answers() == [Answered("And that one?", [OBOE], f"Gladly: {ANSWER}")]


def test_an_engine_that_asks_several_others(captured, model):
    """All that they found reached the answer, in the order of the searches."""
    model.says("Four.", "Forty-seven.")

    class Comparing(CustomQueryEngine):
        def custom_query(self, query_str):
            return f"{engine('cello').query('Cello?')} {engine('harp').query('Harp?')}"

    Comparing().query(QUESTION)

    answer = captured.answer()
    assert (answer.question, answer.response) == (QUESTION, "Four. Forty-seven.")


def test_an_engine_that_needs_neither_search_nor_model(captured):
    class Fixed(CustomQueryEngine):
        def custom_query(self, query_str):
            return "Ask at the desk."

    Fixed().query(QUESTION)

    answer = captured.answer()
    assert (answer.question, answer.response, answer.status) == (QUESTION, "Ask at the desk.", "complete")
    assert not answer.contexts


def test_an_engine_that_asks_the_model_alone(captured):
    class NoSearch(CustomQueryEngine):
        def custom_query(self, query_str):
            return ask_model(query_str)

    NoSearch().query(QUESTION)

    answer = captured.answer()
    assert (answer.question, answer.response) == (QUESTION, ANSWER)
    assert not answer.contexts


def test_an_engine_that_returns_sources_which_its_model_never_saw(captured):
    class WithSources(CustomQueryEngine):
        def custom_query(self, query_str):
            return Response(ask_model(query_str), source_nodes=retriever().retrieve(query_str))

    WithSources().query(QUESTION)

    assert captured.answers() == [Answered(QUESTION, [], ANSWER)]


def test_an_engine_that_streams_what_the_model_says(captured):
    class Streaming(CustomQueryEngine):
        def custom_query(self, query_str):
            (harp,) = retriever("harp").retrieve(query_str)
            chunks = Settings.llm.stream_complete(f"{harp.text}\n{query_str}")
            return StreamingResponse(chunk.delta for chunk in chunks)

    response = Streaming().query(QUESTION)
    assert captured.answers() == []
    assert "".join(response.response_gen) == ANSWER

    record = captured.record()
    assert (record.question, record.response, record.status) == (QUESTION, ANSWER, "complete")
    assert ids(record.contexts) == ["harp"]


def test_an_engine_that_passes_the_stream_of_another_on(captured):
    class Passing(CustomQueryEngine):
        def custom_query(self, query_str):
            return engine(streaming=True).query(f"Rewritten: {query_str}")

    list(Passing().query(QUESTION).response_gen)

    assert captured.answers() == [Answered(QUESTION, [CELLO, HARP], ANSWER)]


def test_an_engine_that_reads_the_stream_of_another_itself(captured):
    class Reading(CustomQueryEngine):
        def custom_query(self, query_str):
            return "".join(engine(streaming=True).query(query_str).response_gen).upper()

    Reading().query(QUESTION)

    assert captured.answers() == [Answered(QUESTION, [CELLO, HARP], ANSWER.upper())]


def test_an_engine_of_the_base_class(captured):
    class Own(BaseQueryEngine):
        def __init__(self):
            super().__init__(callback_manager=None)

        def _get_prompt_modules(self):
            return {}

        def _query(self, query_bundle):
            return get_response_synthesizer().synthesize(query_bundle, found("harp"))

        async def _aquery(self, query_bundle):
            return self._query(query_bundle)

    Own().query(QUESTION)

    assert captured.answers() == [Answered(QUESTION, [HARP], ANSWER)]


@pytest.mark.usefixtures("expected_failure")
def test_an_engine_that_fails(captured):
    class Broken(CustomQueryEngine):
        def custom_query(self, query_str):
            retriever("harp").retrieve(query_str)
            raise KeyError("secret")

    with pytest.raises(KeyError):
        Broken().query(QUESTION)

    answer = captured.answer()
    assert (answer.question, answer.status, answer.error_type) == (QUESTION, "error", "KeyError")


@pytest.mark.usefixtures("expected_failure")
def test_an_engine_that_handles_the_failure_of_another(captured):
    """The user got an answer, and never saw the error."""

    class Careful(CustomQueryEngine):
        def custom_query(self, query_str):
            try:
                return str(engine().query(query_str))
            except RuntimeError:
                return "Please try again."

    Settings.llm.says(RuntimeError("overloaded"))
    Careful().query(QUESTION)

    answer = captured.answer()
    assert (answer.question, answer.response, answer.status) == (QUESTION, "Please try again.", "complete")


def test_an_engine_that_finds_nothing(captured):
    class Empty(CustomQueryEngine):
        def custom_query(self, query_str):
            return ask_model(f"{TopicRetriever().retrieve('nothing')} {query_str}")

    Empty().query(QUESTION)

    assert captured.answers() == [Answered(QUESTION, [], ANSWER)]
