from __future__ import annotations

import pytest

from ragspan.text.responses import declines, is_refusal


@pytest.mark.parametrize(
    "response",
    [
        "I don't know.",
        "The passages do not say when it opened.",
        "There is no mention of the price in the provided text.",
        "Je ne peux pas répondre à cette question.",
        "В тексте не указано, когда открылся музей.",
        "لا توجد معلومات عن السعر في النص.",
        "文中没有提到价格。",
        "Unfortunately, the opening date is not mentioned in the given passages.",
    ],
)
def test_refusals_are_recognised(response):
    assert is_refusal(response)


@pytest.mark.parametrize(
    "response",
    [
        "The tower opened in 1889.",
        "We do not have parking.",
        "There is no evidence that sugar causes hyperactivity.",
        "No information is shared with third parties.",
        "Das Medikament darf nicht mit Alkohol eingenommen werden.",
        "商品在购买三十天后不可以退货。",
    ],
)
def test_answers_that_deny_something_are_no_refusals(response):
    assert not is_refusal(response)


def test_a_stock_phrase_at_the_end_of_a_full_answer_makes_no_refusal():
    response = "The tower opened in 1889. It is 330 metres tall. The passages do not mention its colour."

    assert not is_refusal(response)


def test_an_answer_of_which_half_refuses_is_a_refusal_whatever_courtesies_follow():
    assert is_refusal("The passages do not mention its colour. It is 330 metres tall. I hope this helps!")


@pytest.mark.parametrize(
    "response",
    ["Je ne sais pas.", "No lo sé.", "No se menciona.", "Lo siento, no encuentro la respuesta.", "Keine Angabe.", "Nie wiem.", "Bilmiyorum.", "Non lo so.", "Не знаю."],
)  # fmt: skip
def test_a_few_words_in_any_of_the_languages_decline(response):
    assert declines(response)
