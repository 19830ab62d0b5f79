"""Engines that hand the question to one or several others."""

from __future__ import annotations

import json

import pytest
from captures import Answered
from li_model import first_tokens
from li_programs import ANSWER, CELLO, DRUM, HARP, QUESTION, TopicRetriever, drained, engine, engine_tool, retriever
from llama_index.core import VectorStoreIndex
from llama_index.core.objects import ObjectIndex
from llama_index.core.query_engine import RouterQueryEngine, ToolRetrieverRouterQueryEngine
from llama_index.core.query_engine.router_query_engine import RetrieverRouterQueryEngine
from llama_index.core.response_synthesizers import TreeSummarize
from llama_index.core.selectors import (
    EmbeddingSingleSelector,
    LLMMultiSelector,
    LLMSingleSelector,
)

SUMMED_UP = "Both have strings."


def choice(*numbers):
    return json.dumps([{"choice": number, "reason": "it fits"} for number in numbers])


def picking_router(**options):
    tools = [engine_tool("cellos", "cello", **options), engine_tool("harps", "harp", "drum", **options)]
    return RouterQueryEngine(LLMSingleSelector.from_defaults(), tools)


def combining_router(summarizer=None, **options):
    tools = [engine_tool("cellos", "cello", **options), engine_tool("harps", "harp", **options)]
    return RouterQueryEngine(LLMMultiSelector.from_defaults(), tools, summarizer=summarizer)


def test_a_router_that_picks_one_engine(captured, model):
    """Its engine returns the very response that the router does; that is one request."""
    model.says(choice(2), ANSWER)
    picking_router().query(QUESTION)

    assert captured.answers() == [Answered(QUESTION, [HARP, DRUM], ANSWER)]


async def test_an_asynchronous_router_that_picks_one_engine(captured, model):
    model.says(choice(1), ANSWER)
    await picking_router().aquery(QUESTION)

    assert captured.answers() == [Answered(QUESTION, [CELLO], ANSWER)]


@pytest.mark.parametrize("mode", ["compact", "tree_summarize"])
def test_a_router_over_streaming_engines(captured, model, mode):
    model.says(choice(1), ANSWER)
    response = picking_router(streaming=True, response_mode=mode).query(QUESTION)

    assert captured.answers() == []
    assert "".join(response.response_gen) == ANSWER
    assert captured.answers() == [Answered(QUESTION, [CELLO], ANSWER)]


async def test_an_asynchronous_router_over_streaming_engines(captured, model):
    model.says(choice(1), ANSWER)
    response = await picking_router(streaming=True).aquery(QUESTION)

    assert await drained(response.response_gen) == ANSWER
    assert captured.answers() == [Answered(QUESTION, [CELLO], ANSWER)]


def test_a_routers_stream_that_is_left(captured, model):
    model.says(choice(1), ANSWER)
    response = picking_router(streaming=True, response_mode="tree_summarize").query(QUESTION)
    next(response.response_gen)
    response.response_gen.close()

    assert captured.answers() == [Answered(QUESTION, [CELLO], first_tokens(1, ANSWER), "aborted")]


def test_a_router_that_combines_two_engines(captured, model):
    """The answers of the two are what the last prompt holds; their passages are the evidence."""
    model.says(choice(1, 2), "Four.", "Forty-seven.", SUMMED_UP)
    combining_router().query(QUESTION)

    answer = captured.answer()
    assert (answer.question, answer.contexts, answer.response) == (QUESTION, ["Four.", "Forty-seven."], SUMMED_UP)
    assert set(answer.evidence) == {"cello", "harp"}


async def test_an_asynchronous_router_that_combines_two_engines(captured, model):
    model.says(choice(1, 2), "Same.", "Same.", SUMMED_UP)
    await combining_router().aquery(QUESTION)

    answer = captured.answer()
    assert (answer.question, answer.contexts, answer.response) == (QUESTION, ["Same.", "Same."], SUMMED_UP)


def test_a_router_that_reads_the_streams_of_its_engines_itself(captured, model):
    """The streams inside are read for the last prompt; the user gets the combined answer."""
    model.says(choice(1, 2), "Four.", "Forty-seven.", SUMMED_UP)
    combining_router(streaming=True).query(QUESTION)

    answer = captured.answer()
    assert (answer.question, answer.response, answer.status) == (QUESTION, SUMMED_UP, "complete")


def test_a_router_that_streams_the_combined_answer(captured, model):
    model.says(choice(1, 2), "Four.", "Forty-seven.", SUMMED_UP)
    response = combining_router(TreeSummarize(streaming=True)).query(QUESTION)

    assert "".join(response.response_gen) == SUMMED_UP
    answer = captured.answer()
    assert (answer.question, answer.contexts, answer.response) == (QUESTION, ["Four.", "Forty-seven."], SUMMED_UP)


def test_a_selector_that_compares_embeddings(captured):
    tools = [engine_tool("cello", "cello"), engine_tool("drum", "drum")]
    RouterQueryEngine(EmbeddingSingleSelector.from_defaults(), tools).query("The drum?")

    assert captured.answers() == [Answered("The drum?", [DRUM], ANSWER)]


def test_a_router_of_routers(captured, model):
    model.says(choice(1), choice(2), ANSWER)
    inner = engine_tool("strings", "cello")
    inner._query_engine = picking_router()
    RouterQueryEngine(LLMSingleSelector.from_defaults(), [inner, engine_tool("drums", "drum")]).query(QUESTION)

    assert captured.answers() == [Answered(QUESTION, [HARP, DRUM], ANSWER)]


@pytest.mark.usefixtures("expected_failure")
def test_a_selector_that_cannot_choose(captured, model):
    model.says("I do not know.")
    with pytest.raises(ValueError, match="JSON"):
        picking_router().query(QUESTION)

    answer = captured.answer()
    assert (answer.question, answer.status) == (QUESTION, "error")
    assert not answer.response


def test_engines_that_a_retriever_finds(captured, model):
    tools = [engine_tool("cello", "cello"), engine_tool("drum", "drum")]
    objects = ObjectIndex.from_objects(tools, index_cls=VectorStoreIndex)
    ToolRetrieverRouterQueryEngine(objects.as_retriever(similarity_top_k=1)).query("About the drum?")

    assert captured.answers() == [Answered("About the drum?", [DRUM], ANSWER)]


def test_several_engines_that_a_retriever_finds(captured, model):
    model.says("Four.", "By a pedal.", SUMMED_UP)
    tools = [engine_tool("cello", "cello"), engine_tool("drum", "drum")]
    objects = ObjectIndex.from_objects(tools, index_cls=VectorStoreIndex)
    ToolRetrieverRouterQueryEngine(objects.as_retriever(similarity_top_k=2)).query("About the cello?")

    answer = captured.answer()
    assert (answer.question, answer.response) == ("About the cello?", SUMMED_UP)
    assert answer.contexts == ["Four.", "By a pedal."]


def test_an_engine_made_for_the_node_that_a_retriever_finds(captured):
    """The retrieval chooses the engine; the passages of that engine reach the prompt."""
    RetrieverRouterQueryEngine(TopicRetriever(), lambda node: engine(node.node_id, "harp")).query("The cello?")

    assert captured.answers() == [Answered("The cello?", [CELLO, HARP], ANSWER)]


def test_the_choice_is_no_search(captured, model):
    model.says(choice(1), ANSWER)
    picking_router().query(QUESTION)

    assert [search.name for search in captured.record().retrievals] == [type(retriever()).__name__]
