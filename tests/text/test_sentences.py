"""Where sentences end, and which of a response are claims."""

from __future__ import annotations

import pytest

from ragspan.text.responses import MAX_CHARACTERS, MAX_CLAIMS, read_claims
from ragspan.text.sentences import split_sentences


def texts_of(response):
    return [claim.text for claim in read_claims(response)]


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One ends. Two ends! Does three end? Yes", ["One ends.", "Two ends!", "Does three end?", "Yes"]),
        ("Mixed: • apples • pears", ["Mixed:", "apples", "pears"]),
        ("Dr. Smith met J. R. Jones at 5 p.m. yesterday.", ["Dr. Smith met J. R. Jones at 5 p.m. yesterday."]),
        ("It costs 3.50 at example.com today.", ["It costs 3.50 at example.com today."]),
        ("1. Wash it\n2) Dry it\n- Fold it\n(3) Wear it\na) Mend it\n## Title", ["Wash it", "Dry it", "Fold it", "Wear it", "Mend it", "Title"]),
    ],
)  # fmt: skip
def test_sentences_end_at_stops_line_breaks_and_bullets(text, sentences):
    assert list(split_sentences(text)) == sentences


@pytest.mark.parametrize("sentence", ["Thanks to its harbour, the city grew.", "Here is where the river begins."])
def test_what_looks_like_a_courtesy_is_a_claim(sentence):
    assert texts_of(sentence) == [sentence]


@pytest.mark.parametrize("response", ["", "...", "Yes.", "It is what it is.", "🙂"])
def test_text_without_content_claims_nothing(response):
    assert texts_of(response) == []


def test_only_the_first_claims_of_a_long_response_are_read():
    assert len(texts_of("Cats sleep. " * 2 * MAX_CLAIMS)) == MAX_CLAIMS
    assert sum(map(len, texts_of("cat " * MAX_CHARACTERS))) <= MAX_CHARACTERS
