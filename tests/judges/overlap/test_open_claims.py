"""What words can neither show nor deny is left open: numbers that follow from others, bare replies, refusals, conclusions."""

from __future__ import annotations

import pytest

from ragspan import RagRecord
from ragspan.judges import OverlapJudge
from ragspan.metrics import Completeness, ContextAdherence, ContextUtilization, Faithfulness
from ragspan.outcomes import NotApplicable, Score

WARRANTY = ("The warranty lasts 24 months from the date of purchase.", "Returns are free within 30 days.")
FOLLOWING = [  # contexts, a response whose number follows from theirs
    (("The ticket costs 12 euros. The audio guide costs 5 euros.",), "Together, the ticket and the audio guide cost 17 euros."),
    (("The flight leaves at 10:15 and lands at 12:45.",), "The flight takes two and a half hours."),
    (("The annual plan costs $120, twelve monthly payments cost $144 in total.",), "The annual plan is $24 cheaper than paying monthly."),
    (("He was born in 1809 and died in 1882.",), "He lived to the age of 73."),
    (("The company was founded in 1995. It went bankrupt in 2010.",), "It existed for 15 years before it went bankrupt."),
    (("The price was reduced from $200 to $150.",), "That is a discount of 25 percent."),
    (("A seat costs 35 euros.",), "Two seats cost 70 euros."),
    (("Each box weighs 12 kg. The pallet holds 30 boxes.",), "A full pallet weighs 360 kg."),
    (("There were 300 members in 2019 and 20 percent more in 2020.",), "There were 360 members in 2020."),
    (("Of 50 employees, 20 work part-time.",), "40 percent of the employees work part-time."),
]  # fmt: skip
INVENTED = [  # contexts, a response with a number that does not follow
    (("The ticket costs 12 euros. The audio guide costs 5 euros.",), "Together, the ticket and the audio guide cost 19 euros."),
    (("A seat costs 35 euros.",), "Two seats cost 80 euros."),
    (("Inside the village the speed limit is 30 km/h; outside it is 80 km/h.",), "In the village you may drive at most 50 km/h."),
    (("Full-time employees receive 25 days of vacation. Up to five unused days can be carried over.",), "Full-time employees receive 30 days of vacation."),
]  # fmt: skip

each_metric = pytest.mark.parametrize("metric", [ContextAdherence, Faithfulness, Completeness, ContextUtilization])


async def outcome_of(metric, question, contexts, response):
    record = RagRecord(question=question, contexts=contexts, response=response)
    return await metric(OverlapJudge()).score(record)


async def labels_of(contexts, response, question="What does it say?"):
    """Those of adherence and faithfulness; None where they leave it open."""
    outcomes = [await outcome_of(metric, question, contexts, response) for metric in (ContextAdherence, Faithfulness)]
    return [outcome.label if isinstance(outcome, Score) else None for outcome in outcomes]


@pytest.mark.parametrize(("contexts", "response"), FOLLOWING)
async def test_a_number_that_follows_from_others_does_not_fail(contexts, response):
    assert "fail" not in await labels_of(contexts, response)


@pytest.mark.parametrize(("contexts", "response"), INVENTED)
async def test_a_number_that_follows_from_none_fails(contexts, response):
    assert await labels_of(contexts, response) == ["fail", "fail"]


@pytest.mark.parametrize("response", ["Nope.", "That's right.", "Unfortunately not.", "Yes, that's possible."])
@each_metric
async def test_a_bare_reply_has_no_score_of_any_metric(metric, response):
    outcome = await outcome_of(metric, "Is breakfast included?", ["Breakfast is included in the rate."], response)

    assert isinstance(outcome, NotApplicable)


@each_metric
async def test_a_courtesy_has_no_score_of_any_metric(metric):
    outcome = await outcome_of(metric, "Thanks!", WARRANTY, "Glad I could help!")

    assert isinstance(outcome, NotApplicable)
    assert outcome.reason == "no_claims"


async def test_a_yes_that_only_repeats_the_question_is_left_open():
    assert await labels_of(
        ["It runs on Linux and macOS."], "Yes, it supports Windows.", "Does it support Windows?"
    ) == [None, None]


@pytest.mark.parametrize(
    "response",
    [
        "I don't know.",
        "Das geht aus den Dokumenten nicht hervor.",
        "Je ne trouve pas cette information dans les documents.",
    ],
)
@each_metric
async def test_a_refusal_never_passes_nor_has_a_placeholder_zero(metric, response):
    outcome = await outcome_of(metric, "How long is the warranty?", WARRANTY, response)

    assert isinstance(outcome, NotApplicable)


@each_metric
async def test_a_refusal_is_known_as_right_where_the_contexts_have_only_the_small_words_of_the_question(metric):
    outcome = await outcome_of(metric, "What is the salary of the director?", WARRANTY, "I don't know.")

    assert isinstance(outcome, NotApplicable)
    assert outcome.reason == "refusal"


@pytest.mark.parametrize(
    ("contexts", "response"),
    [
        (("The warranty covers devices bought after 2022.", "Your laptop was bought in 2023."), "Your laptop is covered, since it was bought in 2023."),
        (("Sale items cannot be returned.", "The blue jacket is a sale item."), "The blue jacket can't be returned because it is a sale item."),
    ],
)  # fmt: skip
async def test_a_conclusion_from_several_facts_is_no_contradiction(contexts, response):
    assert "fail" not in await labels_of(contexts, response)
