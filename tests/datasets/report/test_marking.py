from __future__ import annotations

import pytest

from ragspan.datasets.report.marking import mark_claims


def marked(response, claims):
    return [(piece.text, piece.claims) for piece in mark_claims(response, claims) if piece.claims]


def test_without_claims_the_response_is_one_piece():
    assert [(piece.text, piece.claims) for piece in mark_claims("One. Two.", {})] == [("One. Two.", ())]


def test_an_empty_response_has_no_pieces():
    assert mark_claims("", {1: "The tower is green."}) == []


def test_a_claim_that_is_a_sentence_marks_this_sentence():
    response = "The tower is 300 m tall. It was painted green in 1999. People like it."

    assert marked(response, {2: "It was painted green in 1999."}) == [("It was painted green in 1999.", (2,))]


def test_a_paraphrased_claim_marks_the_sentence_that_has_most_of_its_words():
    response = "The tower stands in Paris. In 1999 workers painted it green, at night."

    assert marked(response, {1: "The tower was painted green in 1999."}) == [
        ("In 1999 workers painted it green, at night.", (1,))
    ]


def test_several_claims_may_be_in_one_sentence():
    response = "It is green, and 300 m tall."

    assert marked(response, {1: "It is green.", 3: "It is 300 m tall."}) == [(response, (1, 3))]


def test_a_claim_that_no_sentence_makes_marks_nothing():
    assert marked("Cats purr at night.", {1: "The treasury raised interest rates."}) == []


@pytest.mark.parametrize(
    "response",
    [
        "  Leading space. And trailing.  \n",
        "- one thing\n- another thing\n\n1. a third thing",
        "Bidi \u202e marks. NUL \x00 too. Surrogate \ud800 as well. \u201cQuotes\u201d here.",
        "Same. Same. Same.",
        "...",
    ],
)
def test_the_pieces_are_the_response_character_by_character(response):
    pieces = mark_claims(response, {1: "Same.", 2: "another thing", 3: "NUL too."})

    assert "".join(piece.text for piece in pieces) == response
