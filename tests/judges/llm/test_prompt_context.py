from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragspan.judges.llm.prompt_context import (
    MAX_SENTENCES,
    fit,
    lay_out,
    list_sentences,
    split_context,
    used_share,
)
from ragspan.records import RagRecord
from ragspan.text.limits import fair_limit


@pytest.mark.parametrize(
    ("lengths", "room", "limit"),
    [
        ([], 100, 100),
        ([10, 20], 100, 100),
        ([1000], 100, 100),
        ([1000, 1000], 100, 50),
        ([10, 1000], 100, 90),
        ([1000, 10, 30, 1000], 100, 30),
        ([1, 1, 1], 2, 0),
    ],
)
def test_short_texts_leave_their_room_to_long_ones(lengths, room, limit):
    assert fair_limit(lengths, room) == limit


@given(st.lists(st.integers(0, 1000), max_size=20), st.integers(1, 2000))
def test_the_texts_fit_and_hardly_any_room_is_wasted(lengths, room):
    limit = fair_limit(lengths, room)

    taken = sum(min(length, limit) for length in lengths)
    assert taken <= room
    assert taken == sum(lengths) or room - taken < len(lengths)


def test_contexts_that_fit_with_their_fences_stay_whole():
    assert fit(["x" * 10, "y" * 20], 90, 210) == ["x" * 10, "y" * 20]


def test_of_contexts_of_which_not_even_a_few_words_fit_the_last_are_left_out():
    shown = fit(["x" * 6] * 10_000, 90, 60_000)

    assert 200 < len(shown) < 60_000 / 90
    assert {*shown} == {"x" * 6}


def test_one_context_is_always_kept():
    assert fit(["x" * 10] * 2, 90, 5) == [""]
    assert fit([], 90, 5) == []


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=30), st.integers(200, 5000))
def test_what_is_kept_fits_into_the_room(lengths, room):
    shown = fit(["x" * length for length in lengths], 90, room)

    assert sum(len(text) + 90 + 80 * (len(text) < length) for text, length in zip(shown, lengths, strict=False)) <= room


def test_a_record_without_question_or_contexts_can_be_laid_out():
    record = RagRecord(question=None, contexts=None, response="Some answer.")
    material = lay_out(record, max_context_chars=60_000, max_response_chars=20_000).material

    assert "0 contexts" in material
    assert "Some answer." in material


# The sentences of contexts


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
