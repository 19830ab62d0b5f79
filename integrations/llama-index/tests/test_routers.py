"""Engines that hand the question to one or several others."""

from __future__ import annotations

import json
from functools import partial

import pytest
from captures import Answered
from li_programs import ANSWER, CELLO, DRUM, HARP, QUESTION, answer_of, each_way, engine_tool
from llama_index.core.query_engine import RouterQueryEngine
from llama_index.core.selectors import LLMMultiSelector, LLMSingleSelector

SUMMED_UP = "Both have strings."


def choice(*numbers):
    return json.dumps([{"choice": number, "reason": "it fits"} for number in numbers])


def picking_router(**options):
    tools = [engine_tool("cellos", "cello", **options), engine_tool("harps", "harp", "drum", **options)]
    return RouterQueryEngine(LLMSingleSelector.from_defaults(), tools)


def combining_router(summarizer=None, **options):
    tools = [engine_tool("cellos", "cello", **options), engine_tool("harps", "harp", **options)]
    return RouterQueryEngine(LLMMultiSelector.from_defaults(), tools, summarizer=summarizer)


@each_way
@pytest.mark.parametrize("mode", ["compact", "tree_summarize"])
@pytest.mark.parametrize(("picked", "contexts"), [(1, [CELLO]), (2, [HARP, DRUM])])
def test_a_router_that_picks_one_engine(captured, model, way, mode, picked, contexts):
    """Its engine returns the very response that the router does; that is one request."""
    model.says(choice(picked), ANSWER)
    assert answer_of(partial(picking_router, response_mode=mode), QUESTION, way) == ANSWER

    assert captured.answers() == [Answered(QUESTION, contexts, ANSWER)]


def test_a_router_that_combines_two_engines(captured, model):
    """The answers of the two are what the last prompt holds; their passages are the evidence."""
    model.says(choice(1, 2), "The cello has four.", "The harp has forty-seven.", SUMMED_UP)
    combining_router().query(QUESTION)

    answer = captured.answer()
    assert (answer.question, answer.contexts, answer.response) == (
        QUESTION,
        ["The cello has four.", "The harp has forty-seven."],
        SUMMED_UP,
    )
    assert set(answer.evidence) == {"cello", "harp"}
