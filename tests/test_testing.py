"""What ragspan gives users for their own tests."""

from __future__ import annotations

from ragspan.metrics import AnswerRelevance, ChunkAttribution, ChunkUtilization, ContextRelevance
from ragspan.records import RagRecord
from ragspan.testing import FakeJudge

RECORD = RagRecord(question="q", contexts=["aaaa", "bbbb"], response="r")


async def test_the_fake_judge_answers_every_question_as_it_is_told():
    judge = FakeJudge(
        useful=[False, True],
        answer_relevance=[0.4, 0.5, 0.6],
        context_relevance=[1.0, 0.5],
        utilization=[0.25, 0.0],
        explanations={"rating": "so", "chunk": "thus"},
    )

    scores = [
        await metric(judge).score(RECORD)
        for metric in (ChunkAttribution, AnswerRelevance, ContextRelevance, ChunkUtilization)
    ]

    assert [score.value for score in scores] == [0.5, 0.5, 0.75, 0.125]
    assert [score.evidence[0].explanation for score in scores] == ["thus", "so", "thus", "thus"]
