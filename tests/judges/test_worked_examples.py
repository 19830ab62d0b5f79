"""The metrics' definitions, by example: through HTTP, the real `openai` client, the judge and the metric."""

from __future__ import annotations

import pytest

from ragspan.judges.llm import PROMPT_VERSION
from ragspan.metrics import (
    AnswerRelevance,
    ChunkAttribution,
    ChunkUtilization,
    Completeness,
    ContextAdherence,
    ContextRelevance,
    ContextUtilization,
    Faithfulness,
)
from ragspan.outcomes import MetricFailure, NotApplicable
from ragspan.records import RagRecord


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
    fake_openai.script(context_verdicts=[numbered(*verdicts)])

    assert (await ContextUtilization(openai_judge()).score(super_bowl)).value == value


async def test_two_of_three_votes_for_grounded_are_an_adherence_of_two_thirds(fake_openai, openai_judge, super_bowl):
    fake_openai.script(grounding=[grounding("not_grounded", "no"), grounding("grounded", "yes"), grounding("grounded")])

    score = await ContextAdherence(openai_judge()).score(super_bowl)

    assert (score.value, score.label, score.explanation) == (2 / 3, "pass", "yes")


async def test_the_four_metrics_of_a_record_take_five_requests(fake_openai, openai_judge, super_bowl):
    fake_openai.script(
        grounding=[grounding("grounded")] * 3,
        completeness=[{"reasoning": "all there", "value": 1.0}] * 3,
        context_verdicts=[numbered("useful", "not_useful", "useful")],
        claims=[["One."]],
        claim_verdicts=[numbered("supported")],
    )
    judge = openai_judge()

    for metric in (ContextAdherence(judge), Completeness(judge), ContextUtilization(judge), Faithfulness(judge)):
        assert (await metric.score(super_bowl)).label == "pass"

    assert len(fake_openai.requests) == 5


async def test_a_tie_of_votes_fails_with_the_explanation_of_those_against(fake_openai, openai_judge, super_bowl):
    fake_openai.script(grounding=[grounding("grounded", "yes"), grounding("not_grounded", "no")])

    score = await ContextAdherence(openai_judge(), polls=2).score(super_bowl)

    assert (score.value, score.label, score.explanation) == (0.5, "fail", "no")


async def test_a_poll_with_one_vote_missing_for_good_counts_the_others(fake_openai, openai_judge, super_bowl):
    fake_openai.script(grounding=[grounding("grounded"), "garbage", grounding("not_grounded"), grounding("perhaps")])

    score = await ContextAdherence(openai_judge()).score(super_bowl)

    assert score.value == 0.5
    assert score.details == {"votes": 3, "valid_votes": 2, "spread": 0.5}


async def test_a_poll_that_is_settled_early_takes_two_replies_of_one_request(fake_openai, openai_judge, super_bowl):
    fake_openai.script(grounding=[grounding("grounded")] * 2)

    score = await ContextAdherence(openai_judge(), early_stop=True).score(super_bowl)

    assert (score.value, score.label) == (1.0, "pass")
    assert [request["n"] for request in fake_openai.requests] == [2]


async def test_a_rating_outside_0_and_1_is_asked_for_once_more(fake_openai, openai_judge, super_bowl):
    fake_openai.script(completeness=[{"reasoning": "r", "value": value} for value in (0.2, 1.5, 0.4, 0.6)])

    score = await Completeness(openai_judge()).score(super_bowl)

    assert score.value == 0.4
    assert len(fake_openai.requests) == 2


async def test_of_duplicated_verdicts_the_first_counts_and_a_missing_one_is_asked_for_once_more(
    fake_openai, openai_judge, super_bowl
):
    fake_openai.script(claims=[["a", "b", "c"]])
    twice = [*numbered("supported", "unsupported"), {"number": 1, "reasoning": "r", "verdict": "unsupported"}]
    late = [{"number": 3, "reasoning": "r", "verdict": "supported"}]
    fake_openai.script(claim_verdicts=[twice, late])

    score = await Faithfulness(openai_judge()).score(super_bowl)

    assert score.value == 2 / 3
    assert [verdict.supported for verdict in score.evidence] == [True, False, True]


async def test_a_claim_that_stays_without_a_verdict_is_a_failure_and_not_a_smaller_denominator(
    fake_openai, openai_judge, super_bowl
):
    fake_openai.script(claims=[["a", "b", "c"]], claim_verdicts=[numbered("supported", "supported"), []])

    outcome = await Faithfulness(openai_judge()).score(super_bowl)

    assert outcome == MetricFailure(error_type="missing_verdicts", message="1 of 3 claims have no verdict")


async def test_a_response_without_claims_has_no_faithfulness(fake_openai, openai_judge, super_bowl):
    fake_openai.script(claims=[[]])

    assert await Faithfulness(openai_judge()).score(super_bowl) == NotApplicable(reason="no_claims")
    assert len(fake_openai.requests) == 1


async def test_relevance_is_the_mean_of_the_ratings(fake_openai, openai_judge, super_bowl):
    fake_openai.script(answer_relevance=[{"reasoning": "r", "value": value} for value in (1, 0.5, 0)])

    score = await AnswerRelevance(openai_judge()).score(super_bowl)

    assert (score.value, score.label) == (0.5, "pass")


async def test_the_relevance_of_contexts_is_the_mean_of_all_a_part_and_nothing(fake_openai, openai_judge, super_bowl):
    fake_openai.script(context_relevance=[numbered("full", "none", "partial")])

    score = await ContextRelevance(openai_judge()).score(super_bowl)

    assert (score.value, score.details["best"]) == (0.5, 1.0)
    assert [context.explanation for context in score.evidence] == ["reason 1", "reason 2", "reason 3"]


async def test_attribution_is_the_share_of_the_contexts_and_takes_no_request_after_utilization(
    fake_openai, openai_judge, super_bowl
):
    fake_openai.script(context_verdicts=[numbered("not_useful", "not_useful", "useful")])
    judge = openai_judge()

    assert (await ContextUtilization(judge).score(super_bowl)).value == 1 / 3
    assert (await ChunkAttribution(judge).score(super_bowl)).value == 1 / 3
    assert len(fake_openai.requests) == 1


async def test_utilization_of_the_text_is_the_share_of_its_characters_in_used_sentences(fake_openai, openai_judge):
    record = RagRecord(question="Who won?", contexts=["Green Bay won. It rained.", "Snow."], response="Green Bay.")
    fake_openai.script(
        used_sentences=[
            [{"number": 1, "reasoning": "r", "sentences": [1]}, {"number": 2, "reasoning": "r", "sentences": []}]
        ]
    )

    score = await ChunkUtilization(openai_judge()).score(record)

    assert score.value == 15 / 30
    assert [context.value for context in score.evidence] == [15 / 25, 0]


async def test_every_score_says_which_prompts_made_it_and_whether_they_held_all_of_the_texts(
    fake_openai, openai_judge, super_bowl
):
    fake_openai.script(grounding=[grounding("grounded")] * 6)

    whole = await ContextAdherence(openai_judge()).score(super_bowl)
    cut = await ContextAdherence(openai_judge(max_context_chars=430)).score(super_bowl)

    assert whole.prompt_version == cut.prompt_version == PROMPT_VERSION
    assert "read" not in whole.details
    assert 0.5 < cut.details["read"] < 1
    assert "the judge saw only 68 of" in cut.explanation


async def test_votes_of_which_half_are_garbage_twice_are_a_failure(fake_openai, openai_judge, super_bowl):
    fake_openai.script(grounding=[grounding("grounded"), "garbage", grounding("maybe"), grounding("grounded")])
    fake_openai.script(grounding=["garbage", "[]"])

    outcome = await ContextAdherence(openai_judge(), polls=4).score(super_bowl)

    assert isinstance(outcome, MetricFailure)
    assert outcome.error_type == "missing_verdicts"


async def test_an_endpoint_that_refuses_the_request_is_a_failure_of_that_type(fake_openai, openai_judge, super_bowl):
    fake_openai.answer = lambda _request: fake_openai.fails(429, "Slow down.")

    outcome = await Faithfulness(openai_judge()).score(super_bowl)

    assert outcome == MetricFailure(error_type="RateLimitError", message=outcome.message, outage=True)
    assert "Slow down." in outcome.message
