"""`ragspan.capture` around LlamaIndex, and `ragspan.record_contexts` inside of it."""

from __future__ import annotations

import pytest
from captures import Answered
from li_programs import ANSWER, CELLO, HARP, OBOE, PASSAGES, QUESTION, answer_of, ask_model, engine, found, retriever
from llama_index.core.base.response.schema import Response
from llama_index.core.query_engine import CustomQueryEngine

from ragspan import capture, record_contexts

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


def test_passages_that_only_the_answer_of_an_engine_shows(captured):
    class Looks(CustomQueryEngine):
        def custom_query(self, query_str):
            return Response(ask_model(f"{PASSAGES['oboe']} {query_str}"), source_nodes=found("oboe"))

    Looks().query(QUESTION)

    assert captured.answers() == [Answered(QUESTION, [PASSAGES["oboe"]], ANSWER)]


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
