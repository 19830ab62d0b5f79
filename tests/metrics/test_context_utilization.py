from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragspan.judges.base import ContextVerdict
from ragspan.metrics import ContextUtilization
from ragspan.metrics.context_utilization import average_precision, rank_order
from ragspan.outcomes import MetricFailure
from ragspan.records import RetrievedContext, as_contexts


@pytest.mark.parametrize(
    ("useful", "value"),
    [
        ([1], 1.0),
        ([1, 1, 1], 1.0),
        ([1, 1, 0, 0], 1.0),
        ([1, 0, 0, 0, 0, 0, 0, 0, 0, 0], 1.0),
        ([1, 0, 1], 5 / 6),
        ([0, 1], 0.5),
        ([0, 0, 1], 1 / 3),
        ([0, 0], 0.0),
    ],
)
def test_average_precision_is_exact(useful, value):
    assert average_precision(useful) == value


@given(st.lists(st.booleans(), max_size=40))
def test_only_useful_passages_that_all_come_first_reach_1(useful):
    all_first = any(useful) and useful == sorted(useful, reverse=True)

    assert (average_precision(useful) == 1.0) == all_first
    assert 0 <= average_precision(useful) <= 1


@pytest.mark.parametrize(
    ("ranks", "order"),
    [
        ([None, None, None], [0, 1, 2]),
        ([2, 0, 1], [1, 2, 0]),
        ([0, 0, 1], [0, 1, 2]),
        ([5, None, 1, None], [2, 1, 0, 3]),
    ],
)
def test_contexts_without_a_rank_keep_their_place_and_the_others_fill_the_rest_by_rank(ranks, order):
    assert rank_order([RetrievedContext(text="x", rank=rank) for rank in ranks]) == order


async def test_the_retrievers_order_counts_and_not_that_of_the_prompt(fixed_judge, answered):
    contexts = (RetrievedContext(text="useless", rank=1), RetrievedContext(text="useful", rank=0))

    score = await ContextUtilization(fixed_judge(useful=[0, 1])).score(answered(contexts=contexts))

    assert score.value == 1.0
    assert [verdict.index for verdict in score.evidence] == [1, 0]


async def test_the_share_of_useful_passages_stands_beside_the_value(fixed_judge, answered):
    score = await ContextUtilization(fixed_judge(useful=[1, 0, 1, 0])).score(answered(contexts=["a", "b", "c", "d"]))

    assert score.details == {"precision": 0.5}
    assert score.explanation == "2 of 4 contexts were useful for the response; their places by rank: 1, 3."


async def test_no_useful_passage_scores_0(fixed_judge, answered):
    score = await ContextUtilization(fixed_judge(useful=[0, 0])).score(answered())

    assert (score.value, score.label) == (0.0, "fail")
    assert score.explanation == "None of the 2 contexts was useful for the response."


async def test_a_passage_without_a_verdict_is_a_failure(fixed_judge, answered):
    outcome = await ContextUtilization(fixed_judge(useful=[1])).score(answered())

    assert isinstance(outcome, MetricFailure)
    assert (outcome.error_type, outcome.message) == ("missing_verdicts", "1 of 2 contexts have no verdict")


async def test_the_first_verdict_for_a_passage_counts_and_those_for_no_passage_do_not(fixed_judge, answered):
    indices = [(0, True), (0, False), (7, False), (-1, False), (1, True)]
    judge = fixed_judge(useful=[ContextVerdict(index=index, useful=useful) for index, useful in indices])

    assert (await ContextUtilization(judge).score(answered())).value == 1.0


async def test_the_explanation_of_very_many_passages_stays_short(fixed_judge, answered):
    many = as_contexts(["text"] * 1000)

    score = await ContextUtilization(fixed_judge(useful=[1] * 1000)).score(answered(contexts=many))

    assert score.value == 1.0
    assert len(score.explanation) < 200
