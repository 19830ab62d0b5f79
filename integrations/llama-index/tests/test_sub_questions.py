"""Engines that ask questions of their own and answer from the answers."""

from __future__ import annotations

import json

import pytest
from captures import Answered
from li_programs import (
    ANSWER,
    QUESTION,
    FixedRetriever,
    answer_of,
    each_way,
    engine,
    engine_over,
    engine_tool,
    topic_engine,
)
from llama_index.core import Settings, get_response_synthesizer
from llama_index.core.indices.query.query_transform.base import StepDecomposeQueryTransform
from llama_index.core.query_engine import MultiStepQueryEngine, SubQuestionQueryEngine
from llama_index.core.question_gen import LLMQuestionGenerator
from llama_index.core.retrievers import RecursiveRetriever
from llama_index.core.schema import IndexNode, NodeWithScore

BOTH = "Compare the cello and the harp."
COMPARED = "The harp has more strings."


def plan(*tools):
    """What the model says when it is asked for sub-questions: one about each tool."""
    items = [{"sub_question": f"What of the {tool}?", "tool_name": tool} for tool in tools]
    return "```json\n" + json.dumps({"items": items}) + "\n```"


def sub_question_engine(**options):
    tools = [engine_tool("cello", "cello"), engine_tool("harp", "harp")]
    return SubQuestionQueryEngine.from_defaults(
        tools, question_gen=LLMQuestionGenerator.from_defaults(), verbose=False, **options
    )


def sub_answer(tool, answer):
    return f"Sub question: What of the {tool}?\nResponse: {answer}"


EXPECTED = Answered(
    BOTH,
    [sub_answer("cello", ANSWER), sub_answer("harp", ANSWER)],
    COMPARED,
    evidence=("cello", "harp"),
)


@pytest.fixture
def compares(model):
    return model.says(plan("cello", "harp"), ANSWER, ANSWER, COMPARED)


def synthesizing(**options):
    return sub_question_engine(response_synthesizer=get_response_synthesizer(**options), use_async=False)


@each_way
def test_sub_questions(captured, compares, way):
    assert answer_of(synthesizing, BOTH, way) == COMPARED
    assert captured.answers() == [EXPECTED]


# Several steps


def step_by_step(**options):
    return MultiStepQueryEngine(
        topic_engine(), StepDecomposeQueryTransform(llm=Settings.llm), num_steps=2, index_summary="strings", **options
    )


STEPS = Answered(
    QUESTION,
    [
        "\nQuestion: What is a cello?\nAnswer: A low instrument.",
        "\nQuestion: How is a harp played?\nAnswer: By hand.",
    ],
    ANSWER,
    evidence=("cello", "harp"),
)


@pytest.fixture
def decomposes(model):
    return model.says("What is a cello?", "A low instrument.", "How is a harp played?", "By hand.", ANSWER)


@pytest.mark.parametrize("way", ["query", "aquery", "streamed query"])
def test_several_steps(captured, decomposes, way):
    """The steps of an asynchronous query are synchronous all the same."""
    answer_of(lambda **options: step_by_step(response_synthesizer=get_response_synthesizer(**options)), QUESTION, way)

    assert captured.answers() == [STEPS]


# A search that asks an engine


@each_way
def test_a_node_that_stands_for_an_engine(captured, model, way):
    """What the engine answered is a context, and what it answered from is the evidence behind it."""
    model.says("A low instrument.", ANSWER)
    table = IndexNode(text="A table of instruments", index_id="table")
    sources = {"retriever_dict": {"nodes": FixedRetriever([NodeWithScore(node=table)])}}

    def recursive(**options):
        source = RecursiveRetriever("nodes", query_engine_dict={"table": engine("cello")}, **sources)
        return engine_over(source, **options)

    answer_of(recursive, QUESTION, way)

    context = f"Query: {QUESTION}\nResponse: A low instrument."
    assert captured.answers() == [Answered(QUESTION, [context], ANSWER, evidence=("cello",))]
