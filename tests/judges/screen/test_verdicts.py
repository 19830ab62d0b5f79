"""A response fails by what the screen can quote, passes if the contexts hold nearly all of it, and is open otherwise."""

from __future__ import annotations

import pickle

import pytest

from ragspan import RagRecord
from ragspan.exceptions import JudgeError
from ragspan.judges import OverlapJudge
from ragspan.metrics import Completeness, ContextAdherence, ContextUtilization, Faithfulness

TOWER = "The Eiffel Tower was built by the company of Gustave Eiffel. It opened in March 1889. It is 330 metres tall."
MUSEUM = "The Louvre in Paris is the most visited museum in the world. It opened in 1793."
PUMP = (
    "The motor is covered for 36 months from the date of purchase. The warranty is void if the pump has run dry. "
    "Claims are filed through the service portal and are usually decided within ten working days."
)
COPIED = "The Eiffel Tower opened in March 1889."


@pytest.fixture
def judge():
    return OverlapJudge()


async def adherence(response, *contexts, question=""):
    record = RagRecord(question=question, contexts=contexts, response=response)
    return await ContextAdherence(OverlapJudge(), polls=1).score(record)


async def test_yes_beside_a_sentence_that_denies_fails():
    context = "The vaccine must not be mixed with other medicines in the same syringe."
    score = await adherence("Yes, it may be mixed.", context, question="May the vaccine be mixed with other medicines?")

    assert score.label == "fail"
    assert context.rstrip(".") in score.explanation


async def test_a_copied_answer_passes_and_says_where_its_words_stand():
    score = await adherence("The motor is covered for 36 months.", MUSEUM, PUMP)

    assert (score.label, score.threshold) == ("pass", 0.5)
    assert "in context 2" in score.explanation


async def test_other_words_beside_structured_data_are_worth_less_than_its_values():
    data = '{"name": "Blue Door", "OutdoorSeating": false, "rating": 4.5, "city": "Leeds"}'
    values = await adherence("Blue Door has a rating of 4.5 in Leeds.", data)
    words = await adherence("Blue Door is a place to drink with friends.", data)

    assert 0.5 < words.value < 0.8 < values.value


async def test_what_is_said_in_other_words_has_a_value_and_no_label():
    score = await adherence("You have three years to complain about it.", PUMP)

    assert (score.label, score.threshold) == (None, None)
    assert 0 <= score.value < 0.5
    assert "other words" in score.explanation


async def test_a_longer_answer_of_which_hardly_anything_stands_there_fails():
    score = await adherence("Bring a towel and sunscreen. Lockers take small coins. Lessons start after lunch.", PUMP)

    assert score.label == "fail"
    assert score.explanation.startswith("The contexts hold hardly anything of the response.")


@pytest.mark.parametrize(
    "greeting", ["Hello! I am an AI assistant for the city library.", "Hi! How can I help you today?"]
)
async def test_a_greeting_states_nothing(greeting):
    assert (await adherence(greeting, "The library is open on Mondays.", question="Hi")).reason == "no_claims"


# Claims


async def test_claims_are_supported_unsupported_or_unsure(judge):
    claims = [COPIED, "It opened in 1968 in Berlin.", "Tourists love it.", "The contexts do not mention the price."]
    record = RagRecord(question="When?", contexts=[TOWER], response=" ".join(claims))

    verdicts = await judge.verify_claims(record, await judge.extract_claims(record))

    assert [one.claim for one in verdicts] == claims
    assert [one.verdict for one in verdicts] == ["supported", "unsupported", "unsure", "unsure"]
    assert "1968" in verdicts[1].explanation


@pytest.mark.parametrize(
    ("claim", "verdict"),
    [
        ("With 8 tablets of 500 mg that is 4,000 mg a day.", "unsure"),
        ("With 8 tablets of 500 mg that is 6,150 mg a day.", "unsupported"),
        ("A tablet has 500 mg.", "supported"),
    ],
)
async def test_a_number_that_follows_from_others_is_unsure(judge, claim, verdict):
    record = RagRecord(
        question="How much a day?",
        contexts=["Adults take at most 8 tablets a day. A tablet has 500 mg."],
        response=claim,
    )

    assert [one.verdict for one in await judge.verify_claims(record, [claim])] == [verdict]


# Refusals and replies


@pytest.mark.parametrize("reply", ["Yes.", "No.", "Yes, it is."])
async def test_a_bare_yes_or_no_cannot_be_told(judge, reply):
    record = RagRecord(question="Is it open?", contexts=[TOWER], response=reply)

    with pytest.raises(JudgeError, match="no words") as raised:
        await judge.vote_adherence(record, 1)

    assert raised.value.error_type == "cannot_tell"


@pytest.mark.parametrize("declining", ["The passages do not mention it.", "I don't know.", "Das weiß ich nicht."])
async def test_a_refusal_has_no_score_where_the_contexts_are_about_something_else(judge, declining):
    record = RagRecord(question="Which vaccine protects against measles?", contexts=[TOWER], response=declining)
    metrics = [ContextAdherence(judge), Completeness(judge), ContextUtilization(judge), Faithfulness(judge)]

    assert [(await metric.score(record)).reason for metric in metrics] == ["refusal"] * 4


async def test_of_a_refusal_nobody_can_tell_where_the_contexts_may_hold_an_answer(judge):
    record = RagRecord(question="How long is the motor covered?", contexts=[PUMP], response="I don't know.")

    assert [(await one(judge).score(record)).reason for one in (ContextAdherence, Faithfulness)] == ["cannot_tell"] * 2


# Other metrics


async def test_an_answer_that_covers_more_is_more_complete_and_what_it_leaves_out_is_quoted(judge):
    full = f"{COPIED} The Eiffel Tower was built by the company of Gustave Eiffel."
    scores = [
        await Completeness(judge).score(RagRecord(question="Eiffel Tower?", contexts=[TOWER], response=response))
        for response in (COPIED, full)
    ]

    assert scores[0].value < scores[1].value
    assert scores[0].label is None
    assert "leaves out" in scores[0].explanation
    assert '"The Eiffel Tower was built by the company of Gustave Eiffel"' in scores[0].explanation


async def test_contexts_that_were_used_are_told_from_others(judge):
    record = RagRecord(question="When did the Eiffel Tower open?", contexts=[TOWER, MUSEUM], response=COPIED)

    assert [one.value for one in await judge.judge_usefulness(record)] == [1, 0]
    first, second = await judge.measure_utilization(record)
    assert 0 < first.value < 1
    assert second.value == 0
    relevant, other = await judge.rate_context_relevance(record)
    assert relevant.value == 1.0 > other.value


async def test_a_response_in_another_language_than_its_contexts_does_not_apply():
    outcome = await adherence("Der Turm ist 330 Meter hoch und wird von vielen Menschen besucht.", TOWER)

    assert outcome.reason == "language"


def test_a_judge_travels_without_what_it_keeps(judge):
    assert pickle.loads(pickle.dumps(judge)) == judge


async def test_what_only_the_background_says_is_named_so():
    record = RagRecord(
        question="",
        contexts=["Cards are grey."],
        response="The fee of the card is 49 euros a year, payable in March.",
        background=["The fee of the card is 48 euros a year, payable in March."],
    )
    (vote,) = await OverlapJudge().vote_adherence(record, 1)

    assert 'says "49 euros" in ' in vote.explanation
    assert ', but the background says "48 euros" in ' in vote.explanation
