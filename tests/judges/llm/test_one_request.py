"""All that a record's metrics ask one judge is one request, and the definitions of the metrics hold."""

from __future__ import annotations

import asyncio
import json
from functools import partial

import pytest

from ragspan.exceptions import JudgeError
from ragspan.judges.judge_protocols import ItemQuestion, ItemVerdict
from ragspan.judges.llm import EndpointCapabilities
from ragspan.judges.llm.capabilities import EndpointHabits
from ragspan.judges.llm.llm_judge import merged_claims
from ragspan.judges.llm.tasks import JudgedClaim, JudgedClaims
from ragspan.judges.session import JudgingSession, judging, metered
from ragspan.metrics import Completeness, ContextAdherence, ContextUtilization, Faithfulness
from ragspan.outcomes import MetricFailure
from ragspan.records import RagRecord

FOUR = (ContextAdherence, Completeness, ContextUtilization, Faithfulness)


def claims(*verdicts, more=False, first=1):
    found = [
        {"claim": f"Claim {number} is made.", "reasoning": "because", "verdict": verdict}
        for number, verdict in enumerate(verdicts, start=first)
    ]
    return {"claims": found, "more": more}


def contexts(*verdicts):
    return [{"number": number, "reasoning": "holds it", "verdict": one} for number, one in enumerate(verdicts, start=1)]


def whole(*, vote="grounded", value=1.0, judged=None, useful=("useful", "not_useful", "useful")):
    """A reply to all that the four metrics ask about the record."""
    answer = {
        "judged_claims": judged or claims("supported", "supported"),
        "context_verdicts": contexts(*useful),
        "completeness": {"reasoning": f"{value:g} of it", "value": value},
        "grounding": {"reasoning": f"it is {vote}", "verdict": vote},
    }
    return json.dumps({"answer": answer})


def short(*, vote="grounded", value=1.0):
    parts = {
        "completeness": {"reasoning": f"{value:g} of it", "value": value},
        "grounding": {"reasoning": f"it is {vote}", "verdict": vote},
    }
    return json.dumps({"answer": parts})


@pytest.fixture
def together(scripted):
    """Makes a judge with a script that answers all questions in one request, and its client."""

    def make(*answers, choices=True, **options):
        judge, client = scripted(*answers, mode="one_request", **options)
        client.habits = EndpointHabits(EndpointCapabilities(several_choices=choices))
        return judge, client

    return make


async def scores_of(judge, record, metrics=FOUR, **options):
    with judging(JudgingSession(record=record)):
        made = [metric(judge, **(options if metric in FOUR[:2] else {})) for metric in metrics]
        return await asyncio.gather(*(metric.score(record) for metric in made))


async def test_four_metrics_take_one_request_with_a_choice_for_each_poll(together, super_bowl):
    judge, client = together([whole(vote="not_grounded", value=0.5), whole(), whole(value=0.0)])

    adherence, completeness, utilization, faithfulness = await scores_of(judge, super_bowl)

    assert [(request["n"], request["temperature"]) for request in client.requests] == [(3, 0.7)]
    assert (adherence.value, adherence.explanation) == (2 / 3, "it is grounded")
    assert (completeness.value, completeness.explanation) == (0.5, "0.5 of it")
    assert (utilization.value, faithfulness.value) == (5 / 6, 1.0)
    assert {score.prompt_version for score in (adherence, faithfulness)} == {"6"}


async def test_where_there_are_no_choices_further_polls_are_short_requests_for_vote_and_rating_alone(
    together, super_bowl
):
    judge, client = together([whole()], [short(vote="not_grounded")], [short(value=0.7)], choices=False)

    adherence, completeness, *_ = await scores_of(judge, super_bowl)

    assert (adherence.value, completeness.value) == (2 / 3, 0.9)
    assert [request["n"] for request in client.requests] == [1, 1, 1]
    assert ["judged_claims" in json.dumps(request["schema"]) for request in client.requests] == [True, False, False]
    material = client.prompts[0][: client.prompts[0].index("Task: reply with")]
    assert all(prompt.startswith(material) for prompt in client.prompts), (
        "a provider's cache serves what all begin with"
    )


async def test_a_single_poll_is_one_request_with_one_choice_at_temperature_0(together, super_bowl):
    judge, client = together([whole()])

    await scores_of(judge, super_bowl, polls=1)

    assert [(request["n"], request["temperature"]) for request in client.requests] == [(1, 0.0)]


async def test_opinions_on_claims_and_contexts_are_counted(together, super_bowl):
    judge, _ = together(
        [
            whole(judged=claims("supported", "unsupported", "supported"), useful=("useful", "useful", "not_useful")),
            whole(
                judged=claims("supported", "supported", "unsupported"), useful=("useful", "not_useful", "not_useful")
            ),
            whole(judged=claims("unsupported", "supported"), useful=("useful", "not_useful", "useful")),
        ]
    )

    lenient = partial(Faithfulness, threshold=0.5)
    _, _, utilization, faithfulness = await scores_of(judge, super_bowl, metrics=(*FOUR[:3], lenient))

    assert [verdict.verdict for verdict in faithfulness.evidence] == ["supported", "supported", "unsure"]
    assert [verdict.useful for verdict in utilization.evidence] == [True, False, False]


def test_a_claim_is_found_among_others_by_its_words_and_numbers():
    def opinion(*found):
        return JudgedClaims([JudgedClaim(claim, "r", verdict) for claim, verdict in found])

    first = opinion(("It costs 4 euros.", "supported"), ("The harbour is grey.", "unsupported"))
    second = opinion(("The harbour is a grey one", "supported"), ("It costs 5 euros.", "unsupported"))

    merged = merged_claims([first, second], " [cut]")

    assert [(one.claim, one.verdict) for one in merged] == [
        ("It costs 4 euros.", "supported"),
        ("The harbour is grey.", "unsure"),
    ]
    assert merged[0].reasoning == "r [cut]"


async def test_thirty_claims_take_two_requests(together, super_bowl):
    fifteen = ["supported"] * 15
    judge, client = together(
        [whole(judged=claims(*fifteen, more=True))] * 3,
        [json.dumps({"answer": {"judged_claims": claims("unsupported", *fifteen[1:], first=16)}})] * 3,
    )

    *_, faithfulness = await scores_of(judge, super_bowl)

    assert (faithfulness.details["claims"], faithfulness.value) == (30, 29 / 30)
    assert len(client.requests) == 2
    assert "Claim 15 is made." in client.tasks[1]
    assert "are judged already" in client.tasks[1]


async def test_claims_that_are_not_all_judged_make_no_score(together, super_bowl):
    judge, _ = together([whole(judged=claims("supported", more=True))], ["prose"], ["prose"], choices=False)

    adherence, _, _, faithfulness = await scores_of(judge, super_bowl, polls=1)

    assert adherence.label == "pass"
    assert isinstance(faithfulness, MetricFailure)


async def test_only_what_a_reply_lacks_is_asked_for_again(together, super_bowl):
    broken = json.loads(whole())
    broken["answer"]["judged_claims"] = "none"
    del broken["answer"]["context_verdicts"][1]
    again = {
        "judged_claims": claims("supported"),
        "context_verdicts": [{"number": 2, "reasoning": "r", "verdict": "useful"}],
    }
    judge, client = together([json.dumps(broken)], [json.dumps({"answer": again})])

    scores = await scores_of(judge, super_bowl, polls=1)

    assert [score.label for score in scores] == ["pass"] * 4
    assert "Task: reply with the parts judged_claims, context_verdicts." in client.tasks[1]
    assert "context_verdicts: exactly one verdict for each of these numbers: 2." in client.tasks[1]


async def test_an_error_of_the_request_is_that_of_all_metrics_and_no_further_request_is_made(together, super_bowl):
    judge, client = together(JudgeError("APITimeoutError", "too slow", outage=True))

    outcomes = await scores_of(judge, super_bowl)

    assert [outcome.error_type for outcome in outcomes] == ["APITimeoutError"] * 4
    assert len(client.requests) == 1


async def test_a_metric_alone_asks_in_the_words_of_its_own_task(together, reply, super_bowl):
    judge, client = together([reply(grounding={"reasoning": "r", "verdict": "grounded"})] * 3)

    await scores_of(judge, super_bowl, metrics=[ContextAdherence])

    assert "Task: is the response as a whole grounded" in client.tasks[0]


async def test_faithfulness_alone_is_one_request(together, super_bowl):
    judge, client = together([json.dumps({"answer": {"judged_claims": claims("supported", "unsupported")}})])

    [faithfulness] = await scores_of(judge, super_bowl, metrics=[Faithfulness])

    assert (faithfulness.value, len(client.requests)) == (0.5, 1)


async def test_background_is_quoted_for_what_may_rest_on_it(together):
    record = RagRecord(
        question="What?", contexts=["A.", "B.", "C."], response="An answer.", background=["The fee is 4."]
    )
    judge, client = together([whole()] * 3)

    await scores_of(judge, record)

    assert "The fee is 4." in client.tasks[0]
    assert "For judged_claims and grounding it is a source" in client.tasks[0]


async def test_metrics_may_bring_a_question_about_items(together, super_bowl):
    question = ItemQuestion(key="tone", about="is it polite?", verdicts=("yes", "no"), items=("Hello.", "Go away."))
    answer = {
        "tone": [{"number": 1, "reasoning": "r", "verdict": "Yes."}, {"number": 2, "reasoning": "s", "verdict": "no"}]
    }
    judge, client = together([json.dumps({"answer": answer})])

    assert await judge.judge_items(super_bowl, question) == [
        ItemVerdict(index=0, verdict="yes", explanation="r"),
        ItemVerdict(index=1, verdict="no", explanation="s"),
    ]
    assert "2. Go away." in client.tasks[0]


async def test_what_it_took_is_on_the_meter_of_one_metric(together, super_bowl):
    judge, _ = together([whole()] * 3)
    metrics = [metric(judge) for metric in FOUR]
    session = JudgingSession(record=super_bowl)
    for metric in metrics:  # as an engine does when it starts them
        metric.announce(super_bowl, session)

    async def usage_of(metric):
        with judging(session), metered() as meter:
            await metric.score(super_bowl)
            return meter.total.requests

    assert [await usage_of(metric) for metric in metrics] == [3, 0, 0, 0]  # the script counts one for each choice
