from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragspan.judges.base import ContextRating
from ragspan.metrics import ChunkUtilization, JudgedContext
from ragspan.metrics.chunk_utilization import used_share
from ragspan.outcomes import MetricFailure
from ragspan.records import RetrievedContext


async def test_the_value_is_the_used_share_of_all_the_text(fixed_judge, answered):
    judge = fixed_judge(rated=[1, 0.5, 0])

    score = await ChunkUtilization(judge).score(answered(contexts=["a" * 10, "b" * 60, "c" * 10]))

    assert score.value == 0.5  # (10 + 30 + 0) of 80 characters, where the mean of the shares is 0.5, too
    assert (await ChunkUtilization(judge).score(answered(contexts=["a" * 70, "b" * 20, "c" * 10]))).value == 0.8
    assert score.details == {"used_contexts": 2, "contexts": 3}
    assert judge.asked == [("utilization",)] * 2


async def test_the_evidence_holds_the_share_of_each_passage(fixed_judge, answered):
    contexts = [RetrievedContext(text="a", id="doc-7", rank=2), RetrievedContext(text="bbb")]
    ratings = [ContextRating(index=1, value=1.0), ContextRating(index=0, value=0.0, explanation="nothing")]

    score = await ChunkUtilization(fixed_judge(rated=ratings)).score(answered(contexts=contexts))

    assert score.evidence == (
        JudgedContext(index=0, id="doc-7", rank=2, value=0.0, explanation="nothing"),
        JudgedContext(index=1, id=None, rank=None, value=1.0),
    )
    assert score.explanation == "75% of the contexts' text was used, from contexts 2."


async def test_a_tenth_of_the_text_passes_and_nothing_does_not(fixed_judge, answered):
    tenth = await ChunkUtilization(fixed_judge(rated=[0.1])).score(answered(contexts=["a" * 100]))
    nothing = await ChunkUtilization(fixed_judge(rated=[0, 0])).score(answered())

    assert (tenth.label, nothing.label) == ("pass", "fail")
    assert nothing.explanation == "The response used none of the 2 contexts."


@pytest.mark.parametrize("wrong", [-0.1, 1.1, math.nan])
async def test_a_context_without_a_valid_share_is_a_failure(fixed_judge, answered, wrong):
    outcome = await ChunkUtilization(fixed_judge(rated=[1, wrong])).score(answered())

    assert outcome == MetricFailure(error_type="missing_verdicts", message="1 of 2 contexts have no verdict")


@given(
    st.lists(st.tuples(st.floats(0, 1), st.integers(0, 10**6)), min_size=1).filter(
        lambda passages: any(length for _, length in passages)
    )
)
def test_the_share_of_all_lies_between_those_of_the_passages(passages):
    shares, lengths = zip(*passages, strict=True)

    value = used_share(shares, lengths)

    assert 0 <= value <= 1
    assert min(shares) - 1e-9 <= value <= max(shares) + 1e-9
