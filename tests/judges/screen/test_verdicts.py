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


FINDINGS = [  # the context, the response, and what the explanation quotes of both
    (PUMP, "The motor is covered for 48 months.", "48 months", "36 months"),
    (PUMP, "Claims are decided within twelve working days.", "twelve working", "ten working"),
    (PUMP, "The pump was sold to 17,000 customers.", "17,000 customers", "stands in no context"),
    (PUMP, "The warranty is not void if the pump has run dry.", "warranty is not void", "warranty is void"),
    (PUMP, "The pump is serviced by technicians of Grundfos.", "Grundfos", "stands in no context"),
    ("Write to help@acme.example.", "Write to sales@acme.example.", "sales@acme.example", "help@acme.example"),
    ("Reset it at id.acme.example.", "Reset it at login.acme.example.", "login.acme.example", "id.acme.example"),
    ("The pump weighs 30 kilograms.", "The pump weighs 30 kilometres.", "30 kilometres", "30 kilograms"),
    ("Engineers deliver improvements.", "The improvements were made by Edi.", "Edi", "stands in no context"),
    ("The castle was founded earlier than the village.", "The village was founded earlier than the castle.", "earlier than the castle", "earlier than the village"),
    ("Northwind sold its hardware division to Fabrikam.", "Fabrikam sold its hardware division to Northwind.", "Fabrikam sold", "Northwind sold"),
    ("Trains are faster than buses in the city.", "Trains are slower than buses in the city.", "slower than buses", "faster than buses"),
    ("The night train runs from Vienna to Rome.", "The night train goes from Rome to Vienna.", "from Rome to Vienna", "from Vienna to Rome"),
    ("A certificate is optional for visitors.", "A certificate is mandatory for visitors.", "mandatory", "optional"),
    ("Interest rates were raised by the central bank in May.", "Interest rates were lowered by the central bank in May.", "lowered", "raised"),
    ("The committee failed to agree on Monday.", "The committee agreed on Monday.", "committee agreed", "failed to agree"),
    ("The snack is free of gluten and nuts.", "The snack contains gluten and nuts.", "contains gluten", "free of gluten"),
    ("It was signed on 7 February 1992 in Maastricht.", "It was signed on 7 March 1992 in Maastricht.", "March", "February"),
    ("It was signed on 7 February 1992 in Maastricht.", "It was signed on 07/03/1993 in Maastricht.", "1993", "1992"),
    ("The office is open Mon-Fri from 9 to 18.", "The office is open on Saturday.", "Saturday", "Mon"),
    ("Water boils at 100 degrees Celsius.", "Water boils at 100 °F.", "100 °F", "100 degrees Celsius"),
    ("The film about pumps lasts 60 minutes.", "The film about pumps lasts 64 minutes.", "64 minutes", "60 minutes"),
    ('{"name": "Blue Door", "OutdoorSeating": false}', "Blue Door has outdoor seating.", "Blue Door has outdoor seating", "Outdoor Seating: false"),
    ("Gift cards are valid for three years. They cannot be returned.", "Gift cards can be returned.", "can be returned", "They cannot be returned"),
    ("Standard shipping takes 5 days and costs $4.99. Express shipping takes 1 day and costs $14.99.", "Standard shipping costs $14.99.", "$14.99", "$4.99"),
    ("Error E7 means that the tank is empty.", "Error E9 means that the tank is empty.", "E9", "E7"),
    ("Il biglietto intero costa 14 euro.", "Il biglietto intero costa 18 euro.", "18 euro", "14 euro"),
    ("Eine Kündigung per E-Mail ist nicht möglich.", "Eine Kündigung per E-Mail ist möglich.", "ist möglich", "nicht möglich"),
]  # fmt: skip


@pytest.mark.parametrize(("context", "response", "ours", "theirs"), FINDINGS)
async def test_a_fail_quotes_the_response_and_the_context(context, response, ours, theirs):
    score = await adherence(response, context)

    assert (score.label, score.threshold) == ("fail", 0.5)
    assert score.value < 0.5
    assert ours in score.explanation
    assert theirs in score.explanation
    assert score.explanation.startswith("The response ")
    assert score.explanation.endswith(".")


async def test_yes_beside_a_sentence_that_denies_fails():
    context = "The vaccine must not be mixed with other medicines in the same syringe."
    score = await adherence("Yes, it may be mixed.", context, question="May the vaccine be mixed with other medicines?")

    assert score.label == "fail"
    assert context.rstrip(".") in score.explanation


@pytest.mark.parametrize(
    ("equation", "label"),
    [
        ("2 x 12 = 24", None),
        ("2 x 12 = 26", "fail"),
        ("2 x 12 + 4 = 28", None),
        ("48 / 2 = 12", "fail"),
        ("800 x 12 = 9,650", None),
    ],
)
async def test_a_written_equation_is_computed_and_may_be_rounded(equation, label):
    score = await adherence(f"The tickets cost {equation} euros.", "A ticket costs 12 euros.")

    assert score.label == label


RIGHT = [  # the context, and a right response that once was taken for a wrong one
    ("The hotline is reachable around the clock.", "The hotline is reachable 24/7."),
    ("The price rose from 40 to 50 euros.", "The price rose by 10 euros."),
    ("The licence costs 1,500 euros a year.", "The licence costs 125 euros a month."),
    ("The fee is 200 euros. Members pay 90% of it.", "Members pay 180 euros."),
    ("The fee is 49 euros a month.", "For eleven months you pay 539 euros."),
    ("Delivery takes two weeks.", "Delivery takes 14 days."),
    ("Call us at 0800 123 456.", "Call us at 0800-123456."),
    ("It is open from 8:00 to 18:00.", "It is open from 8 to 18 o'clock."),
    (
        "Six study rooms can be booked for two hours at a time, free of charge.",
        "Six study rooms can be booked for two hours at a time.",
    ),
    ("Returns are free of charge within 30 days.", "Within 30 days returns are possible."),
    ("Members can borrow ten books at no extra cost.", "Members can borrow ten books."),
    ("You can cancel at any time with no penalty.", "You can cancel at any time."),
    ("The World Health Organization recommends the vaccine.", "The WHO recommends the vaccine."),
    ("Shops in Korea close at 10 pm.", "Korean shops close at 22:00."),
    ("Do not take more than 8 tablets a day.", "Take at most 8 tablets a day."),
    ("Every request needs a key, except health checks.", "Health checks need no key."),
    ("Sales rose by 4% to $1.58 billion.", "Sales of $1.58 billion were 4% higher."),
    ("Jobs are sent to the workers by the scheduler.", "The scheduler sends jobs to the workers."),
    ("Passengers travel from Oslo to Bergen by train.", "By train passengers travel to Bergen from Oslo."),
    ("The manager assigns tasks to employees.", "Employees get tasks assigned to them by the manager."),
    ("Refunds are sent to customers within 10 days.", "Customers will receive their refunds within 10 days."),
    ("Keep the water at 25 °C.", "Keep the water at 77 degrees Fahrenheit."),
    ("Children may swim only when accompanied by an adult.", "Children may not swim without an adult."),
    ("The parcel weighs 3 pounds 5 ounces.", "The parcel weighs 3 lb 5 oz."),
    ("The trip is 48 km long.", "The trip is 30 miles long."),
    ("The notice period is three months.", "The notice period is 90 days."),
    ("It was signed on March 14, 2026 in Oslo.", "It was signed on 14/03/2026."),
    ("It was signed on 2026-03-14 in Oslo.", "It was signed on 14.03.2026."),
    ("Der Vertrag wurde am 14. März 2026 geschlossen.", "Der Vertrag wurde am 14.03.2026 geschlossen."),
    ("The invoice was sent in Mar 2024.", "The invoice was sent in March 2024."),
    ("The ticket costs 49,90 euros.", "The ticket costs 49.90 euros."),
    ("The IBAN is DE89 3704 0044 0532 0130 00.", "The IBAN is DE89370400440532013000."),
    ("The card number is 4111111111111111.", "The card number is 4111 1111 1111 1111."),
    ("Call us at (030) 901820-15.", "Call us at 03090182015."),
    ("The shop is open Mon-Sat from 9 to 18.", "The shop is open on Saturday."),
    ("The office is open from Monday to Friday.", "The office is open on Wednesday."),
]


@pytest.mark.parametrize(("context", "response"), RIGHT)
async def test_right_answers_do_not_fail(context, response):
    assert (await adherence(response, context)).label != "fail"


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
