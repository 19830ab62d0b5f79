from __future__ import annotations

import pytest

from ragspan.text.keys import keys, readable, tokens


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Twelve", "12"),
        ("3rd", "3"),
        ("1,234,567", "1234567"),
        ("5 pm", "17:00"),
        ("per cent", "%"),
        ("Sept", "September"),
        ("don't", "not"),
        ("running", "runs"),
        ("relational", "relate"),
        ("hopefulness", "hoping"),
        ("cafe\u0301", "café"),
    ],
)
def test_two_spellings_of_one_thing_have_the_same_key(one, other):
    assert keys(one) == keys(other)


def test_tokens_are_words_numbers_times_percent_and_currency_signs():
    text = "At 5:30 p.m. Dr. O'Brien paid $1,250.50 (12%) for B12; really_good *stuff* in the U.S. today."

    assert tokens(text) == [
        *["At", "5:30 p.m.", "Dr", "O'Brien", "paid", "$", "1,250.50", "12", "%", "for", "B", "12"],
        *["really", "good", "stuff", "in", "the", "U.S.", "today"],
    ]


def test_readable_text_has_ascii_quotes_and_none_of_what_no_encoder_takes():
    text = readable("it’s “so” – \ud800 \u202eabc\x00\x9f")

    assert text == 'it\'s "so" -    abc  '
    assert text.encode()
