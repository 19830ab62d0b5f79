"""What an explanation tells: the claim, both sides and the place where that is certain, and else what was compared."""

from __future__ import annotations

import pytest

from ragspan.judges import OverlapJudge
from ragspan.metrics import ContextAdherence
from ragspan.records import Background, RagRecord

PUMP = (
    "The motor is covered for 36 months from the date of purchase. The warranty is void if the pump has run dry. "
    "Claims are filed through the service portal and are usually decided within ten working days."
)
GAUGE = "A steady green light means that the router is connected. A red light indicates overheating."


@pytest.fixture
async def explained():
    """The explanation of a response, and whether it passes."""

    async def explanation(response, *contexts, question="", background=()):
        record = RagRecord(question=question, contexts=contexts, response=response, background=background)
        score = await ContextAdherence(OverlapJudge(), polls=1, causes=False).score(record)
        return score.label, score.explanation

    return explanation


async def test_a_contradiction_names_the_context_that_has_the_other_side(explained):
    label, explanation = await explained("The motor is covered for 48 months.", GAUGE, PUMP)
    assert label == "fail"
    assert explanation == (
        'says "48 months" where context 2 says "36 months"; in "The motor is covered for 48 months."'
    )


async def test_with_one_context_there_is_no_number(explained):
    assert 'where the context says "36 months"' in (await explained("The motor is covered for 48 months.", PUMP))[1]


async def test_background_is_named_as_such(explained):
    remembered = Background(kind="other", text="The user has a dog that is called Bruno.")
    _, explanation = await explained("Your dog is called Rex.", PUMP, background=(remembered,))
    assert 'the background comes closest with "The user has a dog that is called Bruno."' in explanation


@pytest.mark.parametrize(
    ("context", "response", "shown"),
    [
        ("Il biglietto intero costa 14 euro.", "Il biglietto intero costa 18 euro.", ("18 euro", "14 euro")),
        ("Wysyłka kurierem kosztuje 14,90 zł.", "Wysyłka kurierem kosztuje 19,90 zł.", ("19,90 zł", "14,90 zł")),
        ("L'inscription coûte 15 euros par an.", "L'inscription coûte 25 euros par an.", ("25 euros", "15 euros")),
        (
            "A entrega demora cinco dias úteis nas ilhas.",
            "A entrega demora sete dias úteis nas ilhas.",
            ("sete dias", "cinco dias"),
        ),
    ],
)
async def test_numbers_are_shown_with_what_they_count(explained, context, response, shown):
    _, explanation = await explained(response, context)
    assert f'says "{shown[0]}" where the context says "{shown[1]}"' in explanation


@pytest.mark.parametrize(
    ("context", "response"),
    [
        (
            "The NCAA has never recognized a national champion, and Kentucky beat Oklahoma in the Sugar Bowl of 1950.",
            "In 1950, Kentucky would beat Oklahoma in the Sugar Bowl, however, they are still not recognized as champions.",
        ),
        (
            "In June 1665, New Amsterdam was reincorporated under English law as New York City, named after the Duke of York.",
            "The English took New York from the Dutch.",
        ),
        (
            "The obvious way to increase your score is to send and receive more snaps.",
            "The score is increased by sending and receiving more snaps.",
        ),
        (
            "Each key may issue 100 read requests and 25 write requests per second.",
            "100 per second.",
        ),
    ],
)
async def test_words_that_are_no_counterparts_are_not_set_beside_each_other(explained, context, response):
    assert " where " not in (await explained(response, context))[1].split('; in "')[0]


async def test_what_does_not_fit_is_shown_with_the_sentence_of_the_context(explained):
    context = "The vaccine must not be mixed with other medicines in the same syringe."
    label, explanation = await explained("Yes, it may be mixed with other medicines in the same syringe.", context)
    assert label == "fail"
    assert context in explanation


@pytest.mark.parametrize(
    ("question", "context", "response", "closest"),
    [
        (
            "Are events delivered in order?",
            "Webhooks are signed. Events may arrive more than once and out of order.",
            "Yes, events are always delivered exactly once and in the order in which they occurred.",
            "Events may arrive more than once and out of order.",
        ),
        (
            "Reicht eine E-Mail?",
            "Der Vertrag läuft zwölf Monate. Die Kündigung muss schriftlich erfolgen; eine E-Mail genügt.",
            "Nein, Sie müssen einen unterschriebenen Brief per Einschreiben schicken.",
            "Die Kündigung muss schriftlich erfolgen; eine E-Mail genügt.",
        ),
        (
            "How old may applicants be?",
            "The grant is paid monthly. Applicants must not be older than 28.",
            "Anybody over 35 qualifies automatically, regardless of income or citizenship.",
            "Applicants must not be older than 28.",
        ),
    ],
)
async def test_what_no_context_has_is_shown_beside_the_closest_sentence(
    explained, question, context, response, closest
):
    label, explanation = await explained(response, context, question=question)
    assert label == "fail"
    assert f'the context comes closest with "{closest}"' in explanation


async def test_where_no_context_has_a_word_none_comes_closest(explained):
    _, explanation = await explained("Bring a towel and sunscreen.", PUMP)
    assert explanation == ('words not in the context: towel, sunscreen; in "Bring a towel and sunscreen."')


async def test_each_part_is_named_once(explained):
    context = "It was closed during the war and reopened in 1948 with an exhibition on alpine flora."
    _, explanation = await explained("It reopened in 1945 with an exhibition on tropical flora.", context)
    assert explanation.count("1945") == 2  # the claim is quoted after it


async def test_times_and_ratings_of_a_record_are_not_compared(explained):
    record = '{"name": "Grill", "hours": {"Monday": "17:0-21:0", "Tuesday": "17:0-21:0"}, "stars": 4.0}'
    _, explanation = await explained("The Grill has 4.0 stars and is open on Monday and Tuesday.", record)
    assert "where" not in explanation


async def test_a_sign_of_money_belongs_to_the_number_after_it(explained):
    context = "Season 2: $75,000 per episode. Season 3: $22,500 per episode."
    _, explanation = await explained("Season 2: $20,000 per episode.", context)
    assert '"2 $"' not in explanation


async def test_a_pass_says_in_which_context_its_words_stand(explained):
    label, explanation = await explained("The motor is covered for 36 months.", GAUGE, PUMP)
    assert label == "pass"
    assert explanation.endswith("close together in context 2")
