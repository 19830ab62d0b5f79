"""`ragspan.capture` around LlamaIndex, and `ragspan.record_contexts` inside of it."""

from __future__ import annotations

import asyncio

import pytest
from captures import Answered
from li_programs import (
    ANSWER,
    CELLO,
    HARP,
    OBOE,
    PASSAGES,
    QUESTION,
    answer_of,
    ask_model,
    drained,
    engine,
    ids,
    node,
    retriever,
)
from llama_index.core import Settings
from llama_index.core.query_engine import CustomQueryEngine

from ragspan import capture, record_contexts

COMPLETE = Answered(QUESTION, [CELLO, HARP], ANSWER)


# Inside a request


class SearchesByHand(CustomQueryEngine):
    """Looks into a store that LlamaIndex knows nothing of, and says so."""

    def custom_query(self, query_str):
        record_contexts([PASSAGES["oboe"], PASSAGES["flute"]])
        return ask_model(query_str)


BY_HAND = Answered(QUESTION, [PASSAGES["oboe"], PASSAGES["flute"]], ANSWER)


@pytest.mark.parametrize("way", ["query", "aquery"])
def test_passages_that_an_engine_says_it_uses(captured, way):
    answer_of(SearchesByHand, QUESTION, way)

    assert captured.answers() == [BY_HAND]


def test_nodes_that_an_engine_says_it_uses(captured):
    class Nodes(CustomQueryEngine):
        def custom_query(self, query_str):
            record_contexts([node("oboe"), *retriever("cello").retrieve("cello")])
            return ask_model(query_str)

    Nodes().query(QUESTION)

    assert {"oboe", "cello"} == set(ids(captured.record().contexts))


async def test_passages_that_are_used_in_a_thread_of_the_request(captured):
    class Threaded(CustomQueryEngine):
        def custom_query(self, query_str):
            raise NotImplementedError

        async def acustom_query(self, query_str):
            await asyncio.to_thread(record_contexts, [PASSAGES["oboe"]])
            return ask_model(query_str)

    await Threaded().aquery(QUESTION)

    assert captured.answers() == [Answered(QUESTION, [PASSAGES["oboe"]], ANSWER)]


async def test_each_of_many_requests_keeps_its_own(captured):
    class Echoing(CustomQueryEngine):
        def custom_query(self, query_str):
            raise NotImplementedError

        async def acustom_query(self, query_str):
            await asyncio.sleep(0)
            record_contexts([f"About {query_str}"])
            await asyncio.sleep(0)
            return "Gladly."

    asked = Echoing()
    questions = [f"{number}?" for number in range(20)]
    await asyncio.gather(*map(asked.aquery, questions))

    answers = captured.answers()
    assert sorted((answer.question, *answer.contexts) for answer in answers) == sorted(
        (question, f"About {question}") for question in questions
    )


def test_passages_outside_of_any_request_are_nobodys(captured):
    record_contexts([PASSAGES["oboe"]])
    engine().query(QUESTION)
    record_contexts([PASSAGES["flute"]])

    assert captured.answers() == [COMPLETE]


def test_every_handler_gets_them(new_captures):
    first, second = new_captures(), new_captures()
    SearchesByHand().query(QUESTION)

    assert first.answers() == second.answers() == [BY_HAND]


# OuterRun requests


def test_a_search_and_a_prompt_by_hand(captured):
    """Two calls without a common root, which the block joins."""
    with capture(QUESTION, sink=captured.sink) as answer:
        found = retriever("oboe").retrieve(QUESTION)
        answer.contexts = [each.node.get_content(metadata_mode="llm") for each in found]
        answer.response = ask_model(f"{found} {QUESTION}")

    assert captured.answers() == [Answered(QUESTION, [OBOE], ANSWER)]


def test_an_engine_inside_fills_in_what_is_not_set(captured):
    with capture(QUESTION, sink=captured.sink) as answer:
        answer.response = f"Gladly: {engine().query('cello strings')}"

    assert captured.answers() == [Answered(QUESTION, [CELLO, HARP], f"Gladly: {ANSWER}")]


def test_an_engine_inside_fills_in_everything(captured):
    with capture(sink=captured.sink):
        engine().query(QUESTION)

    assert captured.answers() == [COMPLETE]


def test_two_engines_inside_one_after_the_other_are_one_answer(captured):
    with capture(QUESTION, sink=captured.sink) as answer:
        answer.response = f"{engine('cello').query('The cello?')} {engine('oboe').query('The oboe?')}"

    assert captured.answers() == [Answered(QUESTION, [CELLO, OBOE], f"{ANSWER} {ANSWER}")]


async def test_two_engines_inside_at_the_same_time_are_one_answer(captured):
    with capture(QUESTION, sink=captured.sink) as answer:
        texts = await asyncio.gather(engine("cello").aquery("The cello?"), engine("oboe").aquery("The oboe?"))
        answer.response = " ".join(map(str, texts))

    answer = captured.answer()
    assert (answer.question, answer.response) == (QUESTION, f"{ANSWER} {ANSWER}")
    assert sorted(answer.contexts) == sorted([CELLO, OBOE])


def test_a_stream_that_is_read_inside(captured):
    with capture(QUESTION, sink=captured.sink) as answer:
        answer.response = "".join(engine(streaming=True).query("cello strings").response_gen)

    assert captured.answers() == [COMPLETE]


async def test_an_asynchronous_stream_that_is_read_inside(captured):
    with capture(QUESTION, sink=captured.sink) as answer:
        answer.response = await drained((await engine(streaming=True).aquery("cello strings")).response_gen)

    assert captured.answers() == [COMPLETE]


def test_an_engine_after_the_block_is_a_request_of_its_own(captured):
    with capture("By hand?", sink=captured.sink) as answer:
        answer.response = "By hand."
    engine().query(QUESTION)

    assert captured.answers() == [Answered("By hand?", None, "By hand."), COMPLETE]


@pytest.mark.usefixtures("expected_failure")
def test_an_engine_that_fails_inside(captured):
    Settings.llm.says(RuntimeError("overloaded"))
    with pytest.raises(RuntimeError), capture(QUESTION, sink=captured.sink):
        engine().query("cello strings")

    answer = captured.answer()
    assert (answer.question, answer.contexts) == (QUESTION, [CELLO, HARP])
    assert (answer.status, answer.error_type) == ("error", "RuntimeError")
