from __future__ import annotations

import pytest

from ragspan.text.answers import stated
from ragspan.text.responses import MAX_CHARACTERS, MAX_CLAIMS, read_claims


def texts_of(response):
    return tuple(claim.text for claim in read_claims(stated(response)))


def test_claims_are_the_sentences_without_their_list_markers():
    response = "Two steps follow.\n1. Wash the towel.\n- Dry it outdoors."

    assert texts_of(response) == ("Two steps follow.", "Wash the towel.", "Dry it outdoors.")


@pytest.mark.parametrize(
    "sentence",
    [
        "Thanks to its harbour, the city grew.",
        "Here is where the river begins.",
        "Unable to answer based on the passages.",
    ],
)
def test_what_is_said_after_a_courtesy_or_looks_like_one_is_a_claim(sentence):
    assert texts_of(sentence) == (sentence,)


@pytest.mark.parametrize("response", ["", "   ", "...", "Yes.", "It is what it is.", "🙂"])
def test_text_without_content_claims_nothing(response):
    assert texts_of(response) == ()


def test_only_the_first_claims_of_a_long_response_are_read():
    assert len(texts_of("Cats sleep. " * 2 * MAX_CLAIMS)) == MAX_CLAIMS
    assert sum(map(len, texts_of("cat " * MAX_CHARACTERS))) <= MAX_CHARACTERS
