"""Engines that ask something else than the user did, or ask again; the record keeps the user's words."""

from __future__ import annotations

import gc

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
    retriever,
    topic_engine,
)
from llama_index.core import get_response_synthesizer
from llama_index.core.base.response.schema import Response
from llama_index.core.evaluation import BaseEvaluator, EvaluationResult, GuidelineEvaluator
from llama_index.core.indices.query.query_transform.base import BaseQueryTransform, HyDEQueryTransform
from llama_index.core.query_engine import (
    RetrieverQueryEngine,
    RetryGuidelineQueryEngine,
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


def test_rewriting_by_hand(captured):
    """The transforming engine's own retrieve and synthesize: the synthesizer is given the rewritten question only."""
    rewrites = rewriting()
    rewrites._query_engine = RetrieverQueryEngine(retriever("oboe"), get_response_synthesizer())
    nodes = rewrites.retrieve(QueryBundle("And that one?"))
    rewrites.synthesize(QueryBundle("And that one?"), nodes)

    answer = captured.answer()
    assert (answer.contexts, answer.response) == ([OBOE], ANSWER)


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


@pytest.mark.parametrize("way", ["query", "aquery"])
@pytest.mark.parametrize("bad", [[], ["Bad."]], ids=["at once", "at the second attempt"])
def test_an_answer_that_passes(captured, model, bad, way):
    """The second attempt is asked with the feedback in the question, by a second engine."""
    model.says(*bad, ANSWER)
    answer_of(lambda: RetryQueryEngine(engine(), PassesAtLast(*[False for _ in bad], True)), QUESTION, way)

    assert captured.answers() == [Answered(QUESTION, [CELLO, HARP], ANSWER)]


def test_a_streamed_answer_that_the_engine_has_read_for_the_evaluation(captured):
    """The user is given a stream that is already at its end, and a response that knows its text."""
    response = RetryQueryEngine(engine(streaming=True), PassesAtLast(True)).query(QUESTION)
    assert str(response) == ANSWER
    del response
    gc.collect()

    assert captured.answers() == [Answered(QUESTION, [CELLO, HARP], ANSWER)]


def test_the_last_attempt_counts_even_if_it_does_not_pass(captured, model):
    model.says("Bad.", "Worse.")
    RetryQueryEngine(engine(), PassesAtLast(False), max_retries=1).query(QUESTION)

    assert captured.answers() == [Answered(QUESTION, [CELLO, HARP], "Worse.")]


def test_a_guideline_that_is_kept_at_the_second_attempt(captured, model):
    model.says(
        "Bad.",
        '{"passing": false, "feedback": "Say how many."}',
        ANSWER,
        '{"passing": true, "feedback": "Good."}',
    )
    RetryGuidelineQueryEngine(engine(), GuidelineEvaluator(guidelines="Give a number.")).query(QUESTION)

    assert captured.answers() == [Answered(QUESTION, [CELLO, HARP], ANSWER)]


def test_an_attempt_with_the_sources_that_passed(captured, model):
    """A new index is built of the good sources in the middle of the request, and asked."""
    model.says("Bad.", ANSWER)
    RetrySourceQueryEngine(engine("cello"), PassesAtLast(False, True)).query(QUESTION)

    answer = captured.answer()
    assert (answer.question, answer.response) == (QUESTION, ANSWER)
    assert len(answer.contexts) == 1
    assert "four strings" in answer.contexts[0]


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


def test_an_evaluation_alone_is_no_request(captured, model):
    model.says('{"passing": true, "feedback": "Good."}')
    GuidelineEvaluator(guidelines="Give a number.").evaluate_response(QUESTION, Response(ANSWER))

    assert captured.answers() == []
