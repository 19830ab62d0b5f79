"""All that a record's metrics ask one judge is one request, and what each of its answers becomes."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from functools import partial

import pytest
from fakes import FakeJudge

from ragspan.exceptions import JudgeError
from ragspan.judges.judge_protocols import ClaimVerdict, ContextRating, ItemQuestion, ItemVerdict, Rating
from ragspan.judges.session import JudgingSession, judging
from ragspan.metrics import Completeness, ContextAdherence, ContextUtilization, Faithfulness, FaithfulnessWithHHEM
from ragspan.outcomes import MetricFailure
from ragspan.records import RagRecord

FOUR = (ContextAdherence, Completeness, ContextUtilization, Faithfulness)


def claims(*verdicts, more=False, first=1):
    found = [
        {"claim": f"Claim {number} is made.", "reasoning": "because", "verdict": verdict}
        for number, verdict in enumerate(verdicts, start=first)
    ]
    return {"claims": found, "more": more}


def each(*verdicts):
    return [{"number": number, "reasoning": "because", "verdict": one} for number, one in enumerate(verdicts, start=1)]


def short(*, vote="grounded", value=1.0, **more):
    parts = {
        **more,
        "completeness": {"reasoning": f"{value:g} of it", "value": value},
        "grounding": {"reasoning": f"it is {vote}", "verdict": vote},
    }
    return json.dumps({"answer": parts})


def whole(*, judged=None, useful=("useful", "not_useful", "useful"), **options):
    """A reply to all that the four metrics ask about the record."""
    return short(judged_claims=judged or claims("supported", "supported"), context_verdicts=each(*useful), **options)


async def scores_of(judge, record, metrics=FOUR, **options):
    with judging(JudgingSession(record=record)):
        made = [metric(judge, **(options if metric in FOUR[:2] else {})) for metric in metrics]
        return await asyncio.gather(*(metric.score(record) for metric in made))


# One request


async def test_four_metrics_take_one_request_with_a_choice_for_each_poll(scripted, super_bowl):
    judge, client = scripted([whole(vote="not_grounded", value=0.5), whole(), whole(value=0.0)])

    adherence, completeness, utilization, faithfulness = await scores_of(judge, super_bowl)

    assert len(client.requests) == 1
    assert (adherence.value, adherence.explanation) == (2 / 3, "it is grounded")
    assert (completeness.value, completeness.explanation) == (0.5, "0.5 of it")
    assert (utilization.value, faithfulness.value) == (5 / 6, 1.0)
    assert {score.prompt_version for score in (adherence, faithfulness)} == {"8"}


async def test_where_there_are_no_choices_further_polls_are_short_requests_for_vote_and_rating_alone(
    scripted, super_bowl
):
    judge, client = scripted([whole()], [short(vote="not_grounded")], [short(value=0.7)], choices=False)

    adherence, completeness, *_ = await scores_of(judge, super_bowl)

    assert (adherence.value, completeness.value, client.at_once) == (2 / 3, 0.9, [1, 1, 2])
    material = client.prompts[0][: client.prompts[0].index("Task: reply with")]
    assert all(prompt.startswith(material) for prompt in client.prompts), "a cache serves what all begin with"


async def test_a_single_poll_is_one_request_with_one_choice_at_temperature_0(scripted, super_bowl):
    judge, client = scripted([whole()])

    await scores_of(judge, super_bowl, polls=1)

    assert [(request["n"], request["temperature"]) for request in client.requests] == [(1, 0.0)]


async def test_opinions_on_claims_and_contexts_are_counted(scripted, super_bowl):
    def said(claim_verdicts, useful):
        return whole(judged=claims(*claim_verdicts), useful=useful)

    judge, _ = scripted(
        [
            said(("supported", "unsupported", "supported"), ("useful", "useful", "not_useful")),
            said(("supported", "supported", "unsupported"), ("useful", "not_useful", "not_useful")),
            said(("unsupported", "supported"), ("useful", "not_useful", "useful")).replace("is made", "is done"),
        ]
    )

    lenient = partial(Faithfulness, threshold=0.5)
    _, _, utilization, faithfulness = await scores_of(judge, super_bowl, metrics=(*FOUR[:3], lenient))

    assert [verdict.verdict for verdict in faithfulness.evidence] == ["supported", "supported", "unsure"]
    assert [context.value for context in utilization.evidence] == [1, 0, 0]


async def test_thirty_claims_take_two_requests(scripted, super_bowl):
    fifteen = ["supported"] * 15
    judge, client = scripted(
        [whole(judged=claims(*fifteen, more=True))] * 3,
        [json.dumps({"answer": {"judged_claims": claims("unsupported", *fifteen[1:], first=16)}})] * 3,
    )

    *_, faithfulness = await scores_of(judge, super_bowl)

    assert (faithfulness.details["claims"], faithfulness.value) == (30, 29 / 30)
    assert "are judged already" in client.tasks[1]


async def test_claims_that_are_not_all_judged_make_no_score(scripted, super_bowl):
    judge, _ = scripted([whole(judged=claims("supported", more=True))], ["prose"], ["prose"], choices=False)

    adherence, _, _, faithfulness = await scores_of(judge, super_bowl, polls=1)

    assert adherence.label == "pass"
    assert isinstance(faithfulness, MetricFailure)


@pytest.mark.parametrize("polls", [1, 3])
async def test_only_what_a_request_lacks_in_all_choices_is_asked_for_again(scripted, super_bowl, polls):
    broken = json.loads(whole())
    broken["answer"]["judged_claims"] = "none"
    del broken["answer"]["context_verdicts"][1]
    again = {"judged_claims": claims("supported"), "context_verdicts": each("useful", "useful")[1:]}
    judge, client = scripted([json.dumps(broken)] * polls, [json.dumps({"answer": again})])

    scores = await scores_of(judge, super_bowl, polls=polls)

    assert [score.label for score in scores] == ["pass"] * 4
    assert "Task: reply with the parts judged_claims, context_verdicts." in client.tasks[1]


async def test_an_error_of_the_request_is_that_of_all_who_wait_and_who_comes_later_asks_again(scripted, super_bowl):
    judge, client = scripted(JudgeError("APITimeoutError", "too slow", outage=True), [whole()] * 3)

    with judging(JudgingSession(record=super_bowl)):
        outcomes = await asyncio.gather(*(metric(judge).score(super_bowl) for metric in FOUR))
        assert len(client.requests) == 1
        later = await Faithfulness(judge).score(super_bowl)

    assert [outcome.error_type for outcome in outcomes] == ["APITimeoutError"] * 4
    assert (later.label, len(client.requests)) == ("pass", 2)


async def test_claims_are_listed_once_for_all_who_need_them(scripted, super_bowl):
    judge, client = scripted([json.dumps({"answer": {"judged_claims": claims("supported")}})])
    classifier = FakeJudge(supported=[False])

    meter = []
    with judging(JudgingSession(record=super_bowl, meter=meter)):
        by_model, by_classifier = await asyncio.gather(
            Faithfulness(judge).score(super_bowl), FaithfulnessWithHHEM(judge, classifier).score(super_bowl)
        )

    assert (by_model.value, by_classifier.value) == (1.0, 0.0)
    assert len(client.requests) == len(meter) == 1


async def test_more_votes_than_were_expected_are_asked_for_by_themselves(scripted, vote, super_bowl):
    judge, _ = scripted([vote()] * 3)
    session = JudgingSession(record=super_bowl)
    for metric in FOUR[:2]:
        metric(judge, polls=1).announce(super_bowl, session)

    with judging(session):
        assert len(await judge.vote_adherence(super_bowl, 3)) == 3


async def test_what_it_took_is_on_the_meter_of_one_metric(scripted, super_bowl):
    judge, _ = scripted([whole()] * 3)
    metrics = [metric(judge) for metric in FOUR]
    session = JudgingSession(record=super_bowl)
    for metric in metrics:  # as an engine does when it starts them
        metric.announce(super_bowl, session)

    async def usage_of(metric):
        meter = []
        with judging(replace(session, meter=meter)):
            await metric.score(super_bowl)
            return sum(used.requests for used in meter)

    assert [await usage_of(metric) for metric in metrics] == [3, 0, 0, 0]  # the script counts one for each choice


async def test_in_thorough_mode_each_part_is_a_request_of_which_the_first_goes_ahead(scripted, super_bowl):
    answer = [whole()] * 3
    judge, client = scripted(*[answer] * 4, mode="thorough")

    scores = await scores_of(judge, super_bowl)

    assert [score.label for score in scores] == ["pass"] * 4
    assert client.at_once == [1, 1, 2, 3]
    assert {score.prompt_version for score in scores} == {"8-thorough"}
    assert len({prompt[: prompt.index("Task: reply")] for prompt in client.prompts}) == 1, "all begin alike"
    assert len({json.dumps(request["schema"]) for request in client.requests}) == 1


# Votes and ratings


async def test_missing_votes_are_asked_for_once_more_singly_and_sampled_too(scripted, vote, super_bowl):
    judge, client = scripted([vote(), vote(), vote(), vote("maybe")], [vote()], [vote()])

    votes = await judge.vote_adherence(super_bowl, 5)

    assert (len(votes), len(client.requests)) == (5, 3)


@pytest.mark.parametrize(("votes", "unreadable", "is_answer"), [(3, 1, False), (5, 1, True), (5, 2, False)])
async def test_votes_that_stay_unreadable_are_not_left_out_but_for_few_of_many(
    scripted, vote, super_bowl, votes, unreadable, is_answer
):
    first = [vote()] * (votes - unreadable) + [vote("maybe")] * unreadable
    judge, client = scripted(first, *[[vote("maybe")]] * unreadable)

    if is_answer:
        assert len(await judge.vote_adherence(super_bowl, votes)) == votes - unreadable
    else:
        with pytest.raises(JudgeError, match=f"{unreadable} of {votes} replies could not be read"):
            await judge.vote_adherence(super_bowl, votes)
    assert len(client.requests) == 1 + unreadable


@pytest.mark.parametrize(("good", "told"), [(1, "3 of the judge's last 12"), (0, "1 of the judge's last 3")])
async def test_a_judge_that_cannot_be_read_in_a_quarter_of_its_votes_has_none(scripted, vote, super_bowl, good, told):
    again = [[vote("maybe"), vote(), vote()], [vote()]]
    judge, _ = scripted(*[[vote()] * 3] * good, *again * 3)

    for _ in range(3 * good):
        await judge.vote_adherence(replace(super_bowl), 3)
    with pytest.raises(JudgeError, match=f"{told} votes could not be read at once"):
        await judge.vote_adherence(replace(super_bowl), 3)


async def test_an_error_while_asking_again_does_not_cost_the_votes_that_are_there(scripted, vote, super_bowl):
    judge, _ = scripted([vote()], JudgeError("RateLimitError", "Slow down."), [vote()])

    assert len(await judge.vote_adherence(super_bowl, 3)) == 2


async def test_a_metric_that_is_cancelled_leaves_the_request_to_the_next(scripted, super_bowl):
    judge, client = scripted([whole()], [whole()])
    with judging(JudgingSession(record=super_bowl)):
        adherence, *others = (asyncio.ensure_future(metric(judge).score(super_bowl)) for metric in FOUR[2:])
        while not client.requests:
            await asyncio.sleep(0)
        adherence.cancel()

        [other] = await asyncio.gather(*others)

    assert (other.label, len(client.requests)) == ("pass", 2)


# Claims, contexts and items


async def test_claims_of_ones_own_are_verified_by_their_numbers_and_the_missing_ones_asked_about_again(
    scripted, reply, super_bowl
):
    first = reply(claim_verdicts=[*each("supported"), {"number": 3, "reasoning": "because", "verdict": "perhaps"}])
    second = each("unsupported", "unsupported", "supported")[1:]
    judge, client = scripted([first], [reply(claim_verdicts=second)])

    verdicts = await judge.verify_claims(replace(super_bowl, background=("It rained.",)), ["a", "b", "c"])

    assert verdicts[:2] == [
        ClaimVerdict(index=0, verdict="supported", claim="a", explanation="because"),
        ClaimVerdict(index=1, verdict="unsupported", claim="b", explanation="because"),
    ]
    assert "for each of these numbers: 2, 3." in client.tasks[1]


async def test_a_model_that_counts_in_its_own_way_gives_no_verdict_and_the_failure_says_so(scripted, reply, super_bowl):
    counts_from_0 = [{"number": number, "reasoning": "r", "verdict": "supported"} for number in (0, 1)]
    judge, _ = scripted(*[[reply(claim_verdicts=counts_from_0)]] * 2)

    with pytest.raises(JudgeError, match="verdicts on numbers that it was not asked about"):
        await judge.verify_claims(super_bowl, ["a", "b"])


async def test_nothing_to_judge_costs_no_request(scripted, super_bowl):
    judge, client = scripted()

    assert await judge.verify_claims(super_bowl, []) == []
    assert await judge.judge_usefulness(RagRecord(question="q", contexts=None, response="r")) == []
    assert client.requests == []


async def test_an_answers_relevance_is_rated(scripted, reply, super_bowl):
    judge, _ = scripted([reply(answer_relevance={"reasoning": "because", "value": value}) for value in (0.5, 1)])

    ratings = await judge.rate_answer_relevance(super_bowl, 2)
    assert ratings == [Rating(value=value, explanation="because") for value in (0.5, 1.0)]


async def test_each_context_is_useful_or_not_and_holds_all_a_part_or_nothing_of_an_answer(scripted, reply, super_bowl):
    judge, _ = scripted(
        [reply(context_verdicts=each("useful", "not_useful", "useful"))],
        [reply(context_relevance=each("full", "partial", "none"))],
    )

    assert await judge.judge_usefulness(super_bowl) == [
        ContextRating(index=index, value=value, explanation="because") for index, value in enumerate((1, 0, 1))
    ]
    assert await judge.rate_context_relevance(super_bowl) == [
        ContextRating(index=index, value=value, explanation="because") for index, value in enumerate((1.0, 0.5, 0.0))
    ]


async def test_the_use_of_a_context_is_a_share_of_its_text(scripted, reply, super_bowl):
    findings = [{"number": n, "reasoning": "because", "value": value} for n, value in ((2, 0), (1, 0.4), (3, 1))]
    judge, _ = scripted([reply(context_use=findings)])

    ratings = await judge.measure_utilization(super_bowl)

    assert [(rating.index, rating.value) for rating in ratings] == [(0, 0.4), (1, 0.0), (2, 1.0)]


async def test_metrics_may_bring_a_question_about_items(scripted, super_bowl):
    question = ItemQuestion(key="tone", about="is it polite?", verdicts=("yes", "no"), items=("Hello.", "Go away."))
    answer = {
        "tone": [{"number": 1, "reasoning": "r", "verdict": "Yes."}, {"number": 2, "reasoning": "s", "verdict": "no"}]
    }
    judge, client = scripted([json.dumps({"answer": answer})])

    assert await judge.judge_items(super_bowl, question) == [
        ItemVerdict(index=0, verdict="yes", explanation="r"),
        ItemVerdict(index=1, verdict="no", explanation="s"),
    ]
    assert "is it polite?" in client.prompts[0]


# What the judge reads


async def test_long_contexts_are_cut_to_the_same_length_and_the_share_is_known(scripted, vote):
    judge, client = scripted([vote()], max_context_chars=1000)
    record = RagRecord(question="q", contexts=["x" * 600, "y" * 5000], response="z" * 30_000)

    score = await ContextAdherence(judge, polls=1).score(record)

    assert "<<<context 1 (first 500 of 600 characters)" in client.prompts[0]
    assert "<<<response (first 20,000 of 30,000 characters)" in client.prompts[0]
    assert client.prompts[0].count("y" * 500) == 1
    assert "y" * 501 not in client.prompts[0]
    assert score.details["read"] == 21_001 / 35_601
