"""The metrics' definitions, by example: through HTTP, the real `openai` client, the judge and the metric."""

from __future__ import annotations

import pytest

from ragspan.metrics import Completeness, ContextAdherence, ContextUtilization, Faithfulness
from ragspan.outcomes import MetricFailure


def grounding(verdict, reasoning="because"):
    return {"reasoning": reasoning, "verdict": verdict}


def numbered(*verdicts):
    return [
        {"number": n, "reasoning": f"reason {n}", "verdict": verdict} for n, verdict in enumerate(verdicts, start=1)
    ]


async def test_an_answer_with_one_of_two_claims_supported_has_a_faithfulness_of_one_half(
    fake_openai, openai_judge, super_bowl
):
    claims = ["The first Super Bowl was played on January 15, 1967.", "The Chicago Bears won the first Super Bowl."]
    fake_openai.script(claims=[claims], claim_verdicts=[numbered("supported", "unsupported")])

    score = await Faithfulness(openai_judge()).score(super_bowl)

    assert score.value == 0.5
    assert [verdict.claim for verdict in score.evidence] == claims
    assert [verdict.supported for verdict in score.evidence] == [True, False]
    assert "The Chicago Bears won" in score.explanation
    assert score.judge == "openai:test-model"


async def test_ratings_of_0_4_0_5_and_0_6_are_one_half_with_the_explanation_of_the_second(
    fake_openai, openai_judge, super_bowl
):
    fake_openai.script(
        completeness=[
            {"reasoning": "first", "value": 0.4},
            {"reasoning": "second", "value": 0.5},
            {"reasoning": "third", "value": 0.6},
        ]
    )

    score = await Completeness(openai_judge()).score(super_bowl)

    assert (score.value, score.explanation) == (0.5, "second")


@pytest.mark.parametrize(
    ("verdicts", "value"),
    [(["useful", "not_useful", "useful"], 5 / 6), (["useful"] * 3, 1.0), (["not_useful"] * 3, 0.0)],
)
async def test_utilization_is_the_average_precision_of_the_verdicts(
    fake_openai, openai_judge, super_bowl, verdicts, value
):
    fake_openai.script(passage_verdicts=[numbered(*verdicts)])

    assert (await ContextUtilization(openai_judge()).score(super_bowl)).value == value


async def test_two_of_three_votes_for_grounded_are_an_adherence_of_two_thirds(fake_openai, openai_judge, super_bowl):
    fake_openai.script(grounding=[grounding("not_grounded", "no"), grounding("grounded", "yes"), grounding("grounded")])

    score = await ContextAdherence(openai_judge()).score(super_bowl)

    assert (score.value, score.label, score.explanation) == (2 / 3, "pass", "yes")


async def test_the_four_metrics_of_a_record_take_five_requests(fake_openai, openai_judge, super_bowl):
    fake_openai.script(
        grounding=[grounding("grounded")] * 3,
        completeness=[{"reasoning": "all there", "value": 1.0}] * 3,
        passage_verdicts=[numbered("useful", "not_useful", "useful")],
        claims=[["One."]],
        claim_verdicts=[numbered("supported")],
    )
    judge = openai_judge()

    for metric in (ContextAdherence(judge), Completeness(judge), ContextUtilization(judge), Faithfulness(judge)):
        assert (await metric.score(super_bowl)).label == "pass"

    assert len(fake_openai.requests) == 5


async def test_votes_of_which_half_are_garbage_twice_are_a_failure(fake_openai, openai_judge, super_bowl):
    fake_openai.script(grounding=[grounding("grounded"), "garbage", grounding("maybe"), grounding("grounded")])
    fake_openai.script(grounding=["garbage", "[]"])

    outcome = await ContextAdherence(openai_judge(), polls=4).score(super_bowl)

    assert isinstance(outcome, MetricFailure)
    assert outcome.error_type == "missing_verdicts"


async def test_an_endpoint_that_refuses_the_request_is_a_failure_of_that_type(fake_openai, openai_judge, super_bowl):
    fake_openai.answer = lambda _request: fake_openai.fails(429, "Slow down.")

    outcome = await Faithfulness(openai_judge()).score(super_bowl)

    assert outcome == MetricFailure(error_type="RateLimitError", message=outcome.message)
    assert "Slow down." in outcome.message
