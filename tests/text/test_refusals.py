from __future__ import annotations

import json
from pathlib import Path

import pytest

from ragspan.text.responses import declines, is_refusal

RESPONSES = json.loads(Path(__file__).with_name("refusals.json").read_text("utf-8"))


@pytest.mark.parametrize("response", RESPONSES["refusals"])
def test_refusals_are_recognised(response):
    assert is_refusal(response)


@pytest.mark.parametrize("response", RESPONSES["answers that deny"])
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
