from __future__ import annotations

import pytest

from ragspan.text.sentences import split_sentences


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One ends. Two ends! Does three end? Yes", ["One ends.", "Two ends!", "Does three end?", "Yes"]),
        ('He said "stop." Then he left.', ['He said "stop."', "Then he left."]),
        ("Mixed: • apples • pears", ["Mixed:", "apples", "pears"]),
    ],
)
def test_sentences_end_at_stops_line_breaks_and_bullets(text, sentences):
    assert list(split_sentences(text)) == sentences


@pytest.mark.parametrize(
    "sentence",
    [
        "Dr. Smith met Prof. Jones at 5 p.m. yesterday.",
        "J. R. R. Tolkien wrote it.",
        "It costs 3.50 at example.com today.",
    ],
)
def test_stops_inside_a_sentence_do_not_end_it(sentence):
    assert list(split_sentences(sentence)) == [sentence]


def test_list_markers_are_left_out():
    text = "1. Wash it\n2) Dry it\n- Fold it\n* Store it\n(3) Wear it\na) Mend it\n## Title"

    assert list(split_sentences(text)) == [
        *["Wash it", "Dry it", "Fold it", "Store it", "Wear it", "Mend it", "Title"],
    ]
