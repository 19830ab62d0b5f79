"""Engines that ask something else than the user did, or ask again; the record keeps the user's words."""

from __future__ import annotations

from captures import Answered
from li_programs import (
    ANSWER,
    HARP,
    OBOE,
    answer_of,
    each_way,
    index,
    topic_engine,
)
from llama_index.core.indices.query.query_transform.base import BaseQueryTransform, HyDEQueryTransform
from llama_index.core.query_engine import (
    TransformQueryEngine,
)
from llama_index.core.schema import QueryBundle


class AskAboutTheOboe(BaseQueryTransform):
    def _get_prompts(self):
        return {}

    def _update_prompts(self, prompts):
        pass

    def _run(self, query_bundle, metadata):
        return QueryBundle("What is an oboe?")


def rewriting(**options):
    return TransformQueryEngine(topic_engine(**options), AskAboutTheOboe())


EXPECTED = Answered("And that one?", [OBOE], ANSWER)


@each_way
def test_a_question_that_is_rewritten(captured, way):
    answer_of(rewriting, "And that one?", way)

    assert captured.answers() == [EXPECTED]


def test_an_invented_passage_that_is_searched_for(captured, model):
    model.says("The harp has many strings, forty-seven, and pedals.", ANSWER)
    searching = index().as_query_engine(similarity_top_k=1)
    TransformQueryEngine(searching, HyDEQueryTransform(include_original=False)).query("What is it?")

    assert captured.answers() == [Answered("What is it?", [HARP], ANSWER)]


# Trying again
