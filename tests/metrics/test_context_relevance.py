from __future__ import annotations

import math

import pytest

from ragspan.judges.base import ContextRating
from ragspan.metrics import ContextRelevance, JudgedContext
from ragspan.outcomes import MetricFailure
from ragspan.records import RetrievedContext


async def test_the_value_is_the_mean_over_the_contexts_however_long_they_are(fixed_judge, answered):
    judge = fixed_judge(rated=[1, 0.5, 0])

    score = await ContextRelevance(judge).score(answered(contexts=["long " * 100, "b", "c"]))

    assert (score.value, score.label) == (0.5, "pass")
    assert score.details == {"best": 1.0, "contexts": 3}
    assert judge.asked == [("context relevance",)]


async def test_the_evidence_names_each_passage_as_the_retriever_does(fixed_judge, answered):
    contexts = [RetrievedContext(text="a", id="doc-7", rank=2), RetrievedContext(text="b")]
    ratings = [ContextRating(index=1, value=0.0), ContextRating(index=0, value=0.5, explanation="a part")]

    score = await ContextRelevance(fixed_judge(rated=ratings)).score(answered(contexts=contexts))

    assert score.evidence == (
        JudgedContext(index=0, id="doc-7", rank=2, value=0.5, explanation="a part"),
        JudgedContext(index=1, id=None, rank=None, value=0.0),
    )
    assert score.explanation == "1 of 2 contexts contain something that answers the question: 1 (doc-7)."


async def test_passages_that_hold_nothing_score_0(fixed_judge, answered):
    score = await ContextRelevance(fixed_judge(rated=[0, 0])).score(answered())

    assert (score.value, score.label) == (0.0, "fail")
    assert score.explanation == "None of the 2 contexts contains anything that answers the question."


@pytest.mark.parametrize("wrong", [-0.1, 1.1, math.nan])
async def test_a_context_without_a_valid_rating_is_a_failure(fixed_judge, answered, wrong):
    outcome = await ContextRelevance(fixed_judge(rated=[1, wrong])).score(answered())

    assert outcome == MetricFailure(error_type="missing_verdicts", message="1 of 2 contexts have no verdict")


async def test_the_first_rating_of_a_context_counts_and_those_of_no_context_do_not(fixed_judge, answered):
    ratings = [ContextRating(index=index, value=value) for index, value in [(0, 1.0), (0, 0.0), (9, 0.0), (1, 1.0)]]

    assert (await ContextRelevance(fixed_judge(rated=ratings)).score(answered())).value == 1.0
