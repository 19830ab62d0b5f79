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
    engine_tool,
    ids,
    retriever,
)
from li_workflows import one_step
from llama_index.core import Settings, get_response_synthesizer
from llama_index.core.llms import ChatMessage
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import MetadataMode, NodeWithScore, TextNode
from pydantic import BaseModel

ENOUGH = "It is a long and thorough answer about the strings of instruments."


def both(query):
    return retriever("cello", "harp", "oboe").retrieve(query)


# What is left out, put in another order or written in another way


class Reply(BaseModel):
    """What a model is asked to fill in."""

    text: str


@pytest.mark.parametrize("ask_it", ["complete", "chat", "chat with keywords", "predict", "structured_predict"])
def test_nodes_that_the_program_filters_and_reorders(captured, ask_it):
    from llama_index.core.prompts import PromptTemplate

    def answer(query):
        kept = [node for node in reversed(both(query)) if "double reed" not in node.text]
        prompt = "\n".join(node.get_content(MetadataMode.LLM) for node in kept) + f"\nQuestion: {query}"
        if ask_it == "complete":
            return Settings.llm.complete(prompt=prompt).text
        if ask_it == "predict":
            return Settings.llm.predict(PromptTemplate("{given}"), given=prompt)
        if ask_it == "structured_predict":
            Settings.llm.says(calls("Reply", text=ANSWER))
            return Settings.llm.structured_predict(Reply, PromptTemplate("{given}"), given=prompt).text
        messages = [ChatMessage("Be brief.", role="system"), ChatMessage(prompt)]
        given = Settings.llm.chat(messages) if ask_it == "chat" else Settings.llm.chat(messages=messages, temperature=0)
        return given.message.content

    by_hand(answer).query(QUESTION)

    assert captured.answers() == [Answered(QUESTION, [HARP, CELLO], ANSWER)]


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
    said=["The cello has four strings.", "The harp has forty-seven.", "The harp has more of them."],
)
def test_partial_answers_of_a_model(query):
    """Each was given a passage of its own, and the last prompt holds their words only."""

    nodes = retriever("cello", "harp").retrieve(query)
    notes = [ask_model(f"{node.get_content(MetadataMode.LLM)}\n{query}") for node in nodes]
    return ask_model("\n".join(notes))


@answers(Answered(QUESTION, [CELLO], "IT HAS FOUR."), said=["yes", "no", "It has four.", "yes"])
def test_a_grade_brings_no_passage(query):
    nodes = retriever("cello", "harp").retrieve(query)
    kept = [node for node in nodes if ask_model(f"Relevant? {node.get_content(MetadataMode.LLM)}") == "yes"]
    said = ask_model(f"Say yes or no.\n{kept[0].get_content(MetadataMode.LLM)}\n{query}")
    ask_model(f"Is this grounded? {said}")
    return said.upper()


def test_an_engine_whose_answer_is_polished(captured, model):
    model.says("Four.", ENOUGH)
    by_hand(lambda query: ask_model(f"Polish this: {engine('cello').query(query)}")).query(QUESTION)

    assert captured.answers() == [Answered(QUESTION, [CELLO], ENOUGH)]


# Parts of a node that share its id


def cut(query):
    """As the citation notebook does it: copies of the node, each with a part of its text."""
    (node,) = retriever("cello").retrieve(query)
    for number, part in enumerate(node.text.split(" and "), 1):
        copy = TextNode.model_validate(node.node.model_dump())
        copy.metadata, copy.text = {}, f"Source {number}:\n{part}"
        yield NodeWithScore(node=copy)


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


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_a_model_that_calls_an_engine_itself(captured, model, asynchronous):
    model.says(calls("search", input="?"), ENOUGH)

    async def answer(event):
        tools = [engine_tool("search", "cello")]
        if asynchronous:
            return str(await Settings.llm.apredict_and_call(tools, event.query))
        return str(Settings.llm.predict_and_call(tools, event.query))

    await one_step(answer).run(query=QUESTION)

    assert captured.answers() == [Answered(QUESTION, [CELLO], ENOUGH)]


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


@pytest.mark.parametrize("streaming", [False, True])
def test_passages_that_a_synthesizer_cuts_to_fit(captured, model, streaming):
    """The first passage that does not fit is cut, and what follows it is dropped."""
    model.context_window = 700
    nodes = [NodeWithScore(node=TextNode(text=" ".join(f"fact{n}x{i}" for i in range(90)))) for n in range(3)]
    synthesizer = get_response_synthesizer(response_mode="simple_summarize", streaming=streaming)
    response = synthesizer.synthesize(QUESTION, nodes)
    if streaming:
        list(response.response_gen)

    contexts = captured.record().contexts
    prompt = model.prompts[-1]
    assert contexts
    assert all(context.text in prompt for context in contexts)
    assert [context.truncated for context in contexts] == [False] * (len(contexts) - 1) + [True]
    assert sum(len(context.text.split()) for context in contexts) == prompt.count("fact")
