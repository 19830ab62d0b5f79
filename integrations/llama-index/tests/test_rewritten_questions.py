"""Engines that ask something else than the user did, or ask again; the record keeps the user's words."""

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
    each_way,
    engine,
    index,
    topic_engine,
)
from llama_index.core.evaluation import BaseEvaluator, EvaluationResult
from llama_index.core.indices.query.query_transform.base import BaseQueryTransform, HyDEQueryTransform
from llama_index.core.query_engine import (
    RetryQueryEngine,
    RetrySourceQueryEngine,
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


class PassesAtLast(BaseEvaluator):
    """Finds fault with all answers but the last."""

    def __init__(self, *verdicts):
        self.verdicts = list(verdicts)

    def _get_prompts(self):
        return {}

    def _update_prompts(self, prompts):
        pass

    async def aevaluate(self, query=None, response=None, contexts=None, **kwargs):
        passing = self.verdicts.pop(0) if len(self.verdicts) > 1 else self.verdicts[0]
        return EvaluationResult(query=query, response=response, passing=passing, feedback="Too short.", score=0.0)


def test_the_last_attempt_counts_even_if_it_does_not_pass(captured, model):
    model.says("Bad.", "Worse.")
    RetryQueryEngine(engine(), PassesAtLast(False), max_retries=1).query(QUESTION)

    assert captured.answers() == [Answered(QUESTION, [CELLO, HARP], "Worse.")]


@pytest.mark.usefixtures("expected_failure")
def test_no_source_that_passes(captured):
    class NothingPasses(PassesAtLast):
        async def aevaluate(self, query=None, response=None, contexts=None, **kwargs):
            if query is None or contexts is not None:
                return None
            return await super().aevaluate(query, response)

        def evaluate_response(self, query=None, response=None, **kwargs):
            return EvaluationResult(passing=False)

    with pytest.raises(ValueError, match="No source nodes"):
        RetrySourceQueryEngine(engine("cello"), NothingPasses(False)).query(QUESTION)

    answer = captured.answer()
    assert (answer.question, answer.status, answer.error_type) == (QUESTION, "error", "ValueError")
