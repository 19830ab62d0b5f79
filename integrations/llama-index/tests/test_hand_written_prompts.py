"""Prompts that the application writes itself: the contexts are the nodes that stand in them."""

import json

import pytest
from captures import Answered
from li_agents import agent, ask, retriever_tool
from li_model import calls
from li_programs import (
    ANSWER,
    CELLO,
    HARP,
    OBOE,
    PASSAGES,
    QUESTION,
    answers,
    ask_model,
    by_hand,
    engine,
    ids,
    retriever,
)
from llama_index.core import get_response_synthesizer
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import MetadataMode, NodeWithScore, TextNode

ENOUGH = "It is a long and thorough answer about the strings of instruments."


def both(query):
    return retriever("cello", "harp", "oboe").retrieve(query)


# What is left out, put in another order or written in another way


def test_several_searches_and_a_reranker(captured):
    class Last(BaseNodePostprocessor):
        def _postprocess_nodes(self, nodes, query_bundle=None):
            return nodes[-1:]

    def answer(query):
        kept = {node.node_id: node for _ in range(2) for node in retriever("cello", "harp").retrieve(query)}
        return ask_model(Last().postprocess_nodes(list(kept.values()))[0].get_content(MetadataMode.LLM))

    by_hand(answer).query(QUESTION)

    assert captured.answers() == [Answered(QUESTION, [HARP], ANSWER)]


def test_the_text_is_the_one_that_stands_in_the_prompt(captured):
    """Without metadata where the program writes the node's own text."""
    by_hand(lambda query: ask_model(json.dumps([node.text for node in retriever("cello").retrieve(query)]))).query(
        QUESTION
    )

    assert captured.answers() == [Answered(QUESTION, [PASSAGES["cello"]], ANSWER)]


def test_a_node_of_which_only_a_part_stands_in_the_prompt_is_truncated(captured):
    def answer(query):
        node = NodeWithScore(node=TextNode(text=" ".join(f"word{number}" for number in range(60))))
        (kept,) = Keep().postprocess_nodes([node])
        return ask_model(" ".join(kept.text.split()[:20]))

    class Keep(BaseNodePostprocessor):
        def _postprocess_nodes(self, nodes, query_bundle=None):
            return nodes

    by_hand(answer).query(QUESTION)

    (context,) = captured.record().contexts
    assert context.truncated


def test_nodes_none_of_which_reach_the_model(captured):
    by_hand(lambda query: ask_model(f"{len(both(query))} found")).query(QUESTION)

    assert captured.answers() == [Answered(QUESTION, [], ANSWER)]


# What earlier models and engines said


@answers(
    Answered(QUESTION, [CELLO, HARP], "The harp has more of them."),
    said=["Four strings on a cello.", "The harp has forty-seven.", "The harp has more of them."],
)
def test_partial_answers_of_a_model(query):
    """Each was given a passage of its own, and the last prompt holds their words only."""

    nodes = retriever("cello", "harp").retrieve(query)
    notes = [ask_model(f"{node.get_content(MetadataMode.LLM)}\n{query}") for node in nodes]
    return ask_model("\n".join(notes))


# Parts of a node that share its id


# Answers as contexts


@pytest.mark.parametrize("partial", ["synthesizer", "model"])
def test_a_synthesis_of_partial_answers_rests_on_their_passages(captured, model, partial):
    model.says("About the cello.", "About the harp.", ENOUGH)

    def answer(query):
        parts = []
        for node in retriever("cello", "harp").retrieve(query):
            if partial == "synthesizer":
                said = get_response_synthesizer().synthesize(query, [node])
            else:
                said = ask_model(node.get_content(MetadataMode.LLM))
            parts.append(NodeWithScore(node=TextNode(text=str(said))))
        return get_response_synthesizer().synthesize(query, parts)

    by_hand(answer).query(QUESTION)

    record = captured.record()
    assert [context.text for context in record.contexts] == ["About the cello.", "About the harp."]
    assert ids(record.evidence) == ["cello", "harp"]


# Tools of a model, without an agent


# What an agent remembers


async def test_passages_of_an_earlier_turn_do_not_count_beside_those_of_this_one(captured, model):
    model.says(calls("look_up", input="cello"), "Four.", calls("look_up", input="oboe"), "A reed.")
    asked, memory = agent(retriever_tool()), ChatMemoryBuffer.from_defaults()
    await ask(asked, "The cello?", memory=memory)
    await ask(asked, "And the oboe?", memory=memory)

    assert [answer.contexts for answer in captured.answers()] == [[CELLO], [OBOE]]


# Ways of synthesizers that do not show the model what they were given


@pytest.mark.parametrize("streaming", [False, True])
async def test_a_synthesizer_that_asks_the_bare_question(captured, streaming):
    response = await engine("cello", response_mode="generation", streaming=streaming).aquery(QUESTION)
    if streaming:
        [token async for token in response.response_gen]

    assert captured.answers() == [Answered(QUESTION, [], ANSWER)]
