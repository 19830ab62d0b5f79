from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragspan.judges.llm.prompt_context import MAX_SENTENCES, list_sentences, split_context, used_share


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One. Two! Three?", ["One. ", "Two! ", "Three?"]),
        ("A line\n\n  and another", ["A line\n\n  ", "and another"]),
        ('He said "no." Then he left.', ['He said "no." ', "Then he left."]),
        ("3.5 of 7.0", ["3.5 of 7.0"]),
        ("\u4e00\u3002\u4e8c\u3002", ["\u4e00\u3002", "\u4e8c\u3002"]),
        ("\n\nOne.", ["\n\nOne."]),
        (" \n", []),
        ("", []),
    ],
)
def test_a_context_is_split_at_the_ends_of_sentences_and_lines(text, sentences):
    assert split_context(text) == sentences


@given(st.text())
def test_the_pieces_make_the_text_again(text):
    pieces = split_context(text)

    assert "".join(pieces) == (text if text.strip() else "")
    assert all(piece.strip() for piece in pieces)


def test_of_very_many_sentences_neighbours_count_as_one():
    pieces = split_context("Yes. " * 1000)

    assert len(pieces) == MAX_SENTENCES
    assert set(pieces) == {"Yes. " * 10}


def test_each_sentence_has_a_line_with_its_number_and_its_beginning():
    listed = list_sentences([["Short.\n"], [], ["A  long\nsentence " * 10, "Last."]])

    assert listed.splitlines() == ["1.1 Short.", "3.1 A long sentence A long sentence A long sentence...", "3.2 Last."]


@pytest.mark.parametrize(("used", "share"), [([], 0), ([1], 0.25), ([2], 0.75), ([1, 2], 1), ([1, 1], 0.25)])
def test_the_share_is_that_of_the_characters_whatever_is_named_twice(used, share):
    assert used_share(["a", "bbb"], used) == share


def test_of_a_blank_context_nothing_is_used():
    assert used_share([], []) == 0
