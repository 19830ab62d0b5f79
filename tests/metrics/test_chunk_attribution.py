from __future__ import annotations

from ragspan.judges.base import ContextVerdict
from ragspan.metrics import ChunkAttribution, JudgedContext
from ragspan.outcomes import MetricFailure
from ragspan.records import RetrievedContext


async def test_the_value_is_the_share_of_the_contexts_that_were_used_whatever_their_order(fixed_judge, answered):
    contexts = ["a", "b", "c", "d"]

    first = await ChunkAttribution(fixed_judge(useful=[1, 0, 0, 0])).score(answered(contexts=contexts))
    last = await ChunkAttribution(fixed_judge(useful=[0, 0, 0, 1])).score(answered(contexts=contexts))

    assert first.value == last.value == 0.25
    assert first.details == {"attributed": 1, "contexts": 4}


async def test_the_evidence_names_each_passage_as_the_retriever_does(fixed_judge, answered):
    contexts = [RetrievedContext(text="a", id="doc-7", rank=1), RetrievedContext(text="b", id="doc-9", rank=0)]
    verdicts = [ContextVerdict(index=1, useful=True, explanation="the date"), ContextVerdict(index=0, useful=False)]

    score = await ChunkAttribution(fixed_judge(useful=verdicts)).score(answered(contexts=contexts))

    assert score.evidence == (
        JudgedContext(index=0, id="doc-7", rank=1, value=0.0),
        JudgedContext(index=1, id="doc-9", rank=0, value=1.0, explanation="the date"),
    )
    assert score.explanation == "1 of 2 contexts contributed to the response: 2 (doc-9)."


async def test_one_passage_of_five_passes_and_none_does_not(fixed_judge, answered):
    one = await ChunkAttribution(fixed_judge(useful=[0, 0, 1, 0, 0])).score(answered(contexts=list("abcde")))
    none = await ChunkAttribution(fixed_judge(useful=[0, 0])).score(answered())

    assert (one.label, none.label) == ("pass", "fail")
    assert none.explanation == "0 of 2 contexts contributed to the response."


async def test_a_context_without_a_verdict_is_a_failure(fixed_judge, answered):
    outcome = await ChunkAttribution(fixed_judge(useful=[1])).score(answered())

    assert outcome == MetricFailure(error_type="missing_verdicts", message="1 of 2 contexts have no verdict")


async def test_the_explanation_of_very_many_passages_with_long_ids_stays_short(fixed_judge, answered):
    contexts = [RetrievedContext(text="a", id="x" * 10_000)] * 1000

    score = await ChunkAttribution(fixed_judge(useful=[1] * 1000)).score(answered(contexts=contexts))

    assert len(score.explanation) < 1000
    assert score.explanation.endswith(", ....")
