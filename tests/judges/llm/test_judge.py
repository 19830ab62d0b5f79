from __future__ import annotations

import asyncio
from functools import partial

import pytest

from ragspan.exceptions import JudgeError
from ragspan.judges import LLMJudge
from ragspan.judges.judge_protocols import ClaimVerdict, ContextRating, Rating, Vote
from ragspan.judges.llm.fencing import overhead
from ragspan.judges.session import JudgingSession, judging, metered
from ragspan.metrics import (
    ChunkAttribution,
    ChunkUtilization,
    ContextRelevance,
    ContextUtilization,
    Faithfulness,
    FaithfulnessWithHHEM,
)
from ragspan.records import RagRecord
from ragspan.testing import FakeJudge

FENCE_OF_A_CUT_CONTEXT = overhead("context 1") + 80
RATE_LIMITED = JudgeError("RateLimitError", "Slow down.")


@pytest.fixture
def vote(reply):
    def make(verdict="grounded"):
        return reply(grounding={"reasoning": "because", "verdict": verdict})

    return make


@pytest.fixture
def verdicts(reply):
    """Makes a reply to a question, with a verdict for each (number, verdict)."""

    def make(question, *findings):
        items = [{"number": number, "reasoning": "because", "verdict": verdict} for number, verdict in findings]
        return reply(**{question: items})

    return make


@pytest.fixture
def claim_verdicts(verdicts):
    return partial(verdicts, "claim_verdicts")


@pytest.fixture
def context_verdicts(verdicts):
    return partial(verdicts, "context_verdicts")


# Votes and ratings


async def test_a_vote_carries_the_reasoning_of_the_model(scripted, vote, super_bowl):
    judge, _ = scripted([vote("grounded"), vote("not_grounded")])

    votes = await judge.vote_adherence(super_bowl, 2)

    assert votes == [Vote(grounded=True, explanation="because"), Vote(grounded=False, explanation="because")]


@pytest.mark.parametrize(
    ("question", "ask"),
    [("completeness", LLMJudge.rate_completeness), ("answer_relevance", LLMJudge.rate_answer_relevance)],
)
async def test_a_rating_carries_its_value_and_several_are_sampled(scripted, reply, super_bowl, question, ask):
    judge, client = scripted([reply(**{question: {"reasoning": "half", "value": 0.5}})] * 2)

    assert await ask(judge, super_bowl, 2) == [Rating(value=0.5, explanation="half")] * 2
    assert (client.requests[0]["n"], client.requests[0]["temperature"]) == (2, 0.7)


async def test_missing_votes_are_asked_for_once_more_singly_and_sampled_too(scripted, vote, super_bowl):
    judge, client = scripted([vote(), vote("maybe")], [vote()], [vote()])

    votes = await judge.vote_adherence(super_bowl, 3)

    assert [vote.second_try for vote in votes] == [False, True, False]
    assert [(request["n"], request["temperature"]) for request in client.requests] == [(3, 0.7), (1, 0.7), (1, 0.7)]


@pytest.mark.parametrize(("votes", "unreadable", "is_answer"), [(3, 1, False), (5, 1, True), (5, 2, False)])
async def test_votes_that_stay_unreadable_are_not_left_out_but_for_few_of_many(
    scripted, vote, super_bowl, votes, unreadable, is_answer
):
    first = [vote()] * (votes - unreadable) + [vote("maybe")] * unreadable
    judge, _ = scripted(first, *[[vote("maybe")]] * unreadable)

    if is_answer:
        assert len(await judge.vote_adherence(super_bowl, votes)) == votes - unreadable
    else:
        with pytest.raises(JudgeError, match=f"{unreadable} of {votes} replies could not be read"):
            await judge.vote_adherence(super_bowl, votes)


@pytest.mark.parametrize("verdict", ["maybe", "ungrounded", "", "true", None, True, 1])
async def test_a_verdict_that_is_not_on_the_menu_is_no_vote(scripted, vote, super_bowl, verdict):
    judge, client = scripted([vote(verdict)], [vote(verdict)])

    with pytest.raises(JudgeError) as raised:
        await judge.vote_adherence(super_bowl, 1)

    assert raised.value.error_type == "InvalidVerdict"
    assert len(client.requests) == 2


async def test_an_error_while_asking_again_does_not_cost_the_votes_that_are_there(scripted, vote, super_bowl):
    judge, _ = scripted([vote()], RATE_LIMITED, [vote()])

    assert len(await judge.vote_adherence(super_bowl, 3)) == 2


# Claims


async def test_claims_are_extracted_once_for_all_who_need_them(scripted, reply, claim_verdicts, super_bowl):
    judge, client = scripted([reply(claims=["One."])], [claim_verdicts((1, "supported"))])
    classifier = FakeJudge(supported=[False])

    with judging(JudgingSession(record=super_bowl)), metered() as meter:
        by_model, by_classifier = await asyncio.gather(
            Faithfulness(judge).score(super_bowl), FaithfulnessWithHHEM(judge, classifier).score(super_bowl)
        )

    assert (by_model.value, by_classifier.value) == (1.0, 0.0)
    assert len(client.requests) == meter.total.requests == 2


# One verdict each


async def test_each_claim_gets_its_verdict_by_its_number(scripted, claim_verdicts, super_bowl):
    judge, client = scripted([claim_verdicts((2, "unsupported"), (1, "supported"))])

    verdicts = await judge.verify_claims(super_bowl, ["a", "b"])

    assert verdicts == [
        ClaimVerdict(index=0, verdict="supported", claim="a", explanation="because"),
        ClaimVerdict(index=1, verdict="unsupported", claim="b", explanation="because"),
    ]
    assert "1. a\n2. b\n" in client.tasks[0]


@pytest.mark.parametrize(("verdict", "value"), [("full", 1.0), ("partial", 0.5), ("none", 0.0)])
async def test_a_context_holds_all_a_part_or_nothing_of_an_answer(scripted, reply, verdict, value):
    judge, _ = scripted([reply(context_relevance=[{"number": 1, "reasoning": "because", "verdict": verdict}])])

    ratings = await judge.rate_context_relevance(RagRecord(question="q", contexts=["c"], response=None))

    assert ratings == [ContextRating(index=0, value=value, explanation="because")]


async def test_the_use_of_a_context_is_the_share_of_its_characters_in_the_sentences_that_were_used(scripted, reply):
    record = RagRecord(question="q", contexts=["One. Three more.", "None of it."], response="Three more.")
    findings = [(2, []), (1, [2])]
    judge, client = scripted(
        [reply(used_sentences=[{"number": n, "reasoning": "because", "sentences": used} for n, used in findings])]
    )

    ratings = await judge.measure_utilization(record)

    assert [(rating.index, rating.value) for rating in ratings] == [(0, 11 / 16), (1, 0.0)]
    assert "1.1 One.\n1.2 Three more.\n2.1 None of it.\n" in client.tasks[0]


async def test_only_the_missing_claims_are_asked_about_again(scripted, claim_verdicts, super_bowl):
    first = claim_verdicts((2, "supported"), (3, "perhaps"))
    judge, client = scripted([first], [claim_verdicts((1, "unsupported"), (3, "supported"))])

    verdicts = await judge.verify_claims(super_bowl, ["a", "b", "c"])

    assert [verdict.supported for verdict in verdicts] == [False, True, True]
    assert "1. a\n3. c\n" in client.tasks[1]
    assert "for each of these numbers: 1, 3." in client.tasks[1]


async def test_a_model_that_counts_in_its_own_way_gives_no_verdict_and_the_failure_says_so(
    scripted, claim_verdicts, super_bowl
):
    judge, _ = scripted(*[[claim_verdicts((0, "unsupported"), (1, "supported"))]] * 2)

    with pytest.raises(JudgeError, match="verdicts on numbers that it was not asked about"):
        await judge.verify_claims(super_bowl, ["a", "b"])


async def test_nothing_to_judge_costs_no_request(scripted, super_bowl):
    judge, client = scripted()

    assert await judge.verify_claims(super_bowl, []) == []
    assert await judge.judge_usefulness(RagRecord(question="q", contexts=None, response="r")) == []
    assert client.requests == []


# Cost and cuts


async def test_the_judge_says_how_much_of_a_record_it_reads(scripted):
    judge, _ = scripted(max_context_chars=1000 + overhead("context 1"), max_response_chars=50)

    def record(contexts, response):
        return RagRecord(question="q" * 10, contexts=contexts, response=response)

    assert judge.share_read(record(["x" * 1000], "z" * 50)) == 1.0
    assert judge.share_read(record(["x" * 1090], "z" * 100)) == (1060 - 80) / 1200
    assert judge.share_read(RagRecord(question=None, contexts=None, response=None)) == 1.0


async def test_an_explanation_says_when_the_judge_saw_only_a_part(scripted, vote):
    judge, client = scripted([vote()], max_context_chars=1000 + 2 * FENCE_OF_A_CUT_CONTEXT, max_response_chars=50)
    record = RagRecord(question="q", contexts=["x" * 600, "y" * 5000], response="z" * 200)

    [found] = await judge.vote_adherence(record, 1)

    assert found.explanation == (
        "because [the judge saw only 1,000 of 5,600 characters of the contexts and 50 of 200 characters of the response]"
    )
    assert "<<<context 1 (first 500 of 600 characters)" in client.prompts[0]
    assert "<<<response (first 50 of 200 characters)" in client.prompts[0]
    assert client.prompts[0].count("y" * 500) == 1
    assert "y" * 501 not in client.prompts[0]


@pytest.mark.parametrize("metric", [ContextUtilization, ChunkAttribution, ContextRelevance, ChunkUtilization])
async def test_what_is_asked_of_each_context_does_not_apply_to_more_than_fit(scripted, metric):
    judge, client = scripted()
    record = RagRecord(question="q", contexts=["Beta."] * 10_000, response="r")

    outcome = await metric(judge).score(record)

    assert (outcome.reason, client.requests) == ("too_many_contexts", [])
