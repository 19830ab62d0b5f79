"""Metrics of single contexts: their values, their evidence, and their explanations."""

from __future__ import annotations

import math

import pytest

from ragspan.metrics import ChunkAttribution, ChunkUtilization, ContextRelevance, ContextUtilization
from ragspan.metrics.single_contexts import rank_order
from ragspan.outcomes import MetricFailure
from ragspan.records import RetrievedContext

RATED, USEFUL = "rated", "useful"
METRICS = [
    (ContextRelevance, RATED),
    (ChunkUtilization, RATED),
    (ChunkAttribution, USEFUL),
    (ContextUtilization, USEFUL),
]


def of_lengths(*lengths):
    return ["x" * length for length in lengths]


@pytest.mark.parametrize(
    ("metric", "verdicts", "contexts", "value", "label", "details"),
    [
        (ContextRelevance, [1, 0.5, 0], of_lengths(500, 1, 1), 0.5, "pass", {"best": 1.0, "contexts": 3}),
        (ChunkUtilization, [1, 0.5, 0], of_lengths(70, 20, 10), 0.8, "pass", {"used_contexts": 2, "contexts": 3}),
        (ChunkAttribution, [1, 0, 0, 0], of_lengths(1, 1, 1, 1), 0.25, "pass", {"attributed": 1, "contexts": 4}),
        (ContextUtilization, [0, 0, 1], of_lengths(1, 1, 1), 1 / 3, "fail", {"precision": 1 / 3}),
        (ContextUtilization, [1, 0, 1, 0], of_lengths(1, 1, 1, 1), 5 / 6, "pass", {"precision": 0.5}),
    ],
)
async def test_the_value_its_label_and_its_details(
    fixed_judge, answered, metric, verdicts, contexts, value, label, details
):
    judge = fixed_judge(**{dict(METRICS)[metric]: verdicts})

    score = await metric(judge).score(answered(contexts=contexts))

    assert (score.value, score.label, score.details) == (value, label, details)
    assert len(judge.asked) == 1


IMPOSSIBLE = [(metric, RATED, [1, wrong]) for metric, _ in METRICS[:2] for wrong in (-0.1, 1.1, math.nan)]


@pytest.mark.parametrize(("metric", "kind", "verdicts"), [*[(*one, [1]) for one in METRICS], *IMPOSSIBLE])
async def test_a_context_without_a_valid_verdict_is_a_failure(fixed_judge, answered, metric, kind, verdicts):
    outcome = await metric(fixed_judge(**{kind: verdicts})).score(answered())

    assert outcome == MetricFailure(error_type="missing_verdicts", message="1 of 2 contexts have no verdict")


@pytest.mark.parametrize(("count", "more"), [(15, ""), (16, ", ...")])
async def test_the_explanation_names_fifteen_contexts_by_their_ids(fixed_judge, answered, count, more):
    contexts = [RetrievedContext(text="a", id="d" * 61) for _ in range(count)]
    score = await ChunkAttribution(fixed_judge(useful=[1] * count)).score(answered(contexts=contexts))

    named = ", ".join(f"{at} ({'d' * 60})" for at in range(1, 16))
    assert score.explanation == f"{count} of {count} contexts contributed to the response: {named}{more}."


# The order of the contexts --------------------------------------------------------------------------------------------


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
