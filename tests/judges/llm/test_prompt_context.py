from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragspan.judges.llm.prompt_context import (
    fit,
    split_context,
)
from ragspan.text.limits import fair_limit


@pytest.mark.parametrize(
    ("lengths", "room", "limit"),
    [([], 100, 100), ([1000, 1000], 100, 50), ([10, 1000], 100, 90), ([1000, 10, 30, 1000], 100, 30)],
)
def test_short_texts_leave_their_room_to_long_ones(lengths, room, limit):
    assert fair_limit(lengths, room) == limit


def test_of_contexts_of_which_not_even_a_few_words_fit_the_last_are_left_out():
    shown = fit(["x" * 6] * 10_000, 90, 60_000)

    assert 200 < len(shown) < 60_000 / 90
    assert {*shown} == {"x" * 6}


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=30), st.integers(200, 5000))
def test_what_is_kept_fits_into_the_room(lengths, room):
    shown = fit(["x" * length for length in lengths], 90, room)

    assert sum(len(text) + 90 + 80 * (len(text) < length) for text, length in zip(shown, lengths, strict=False)) <= room


# The sentences of contexts


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One. Two! Three?", ["One. ", "Two! ", "Three?"]),
        ("A line\n\n  and another", ["A line\n\n  ", "and another"]),
        ("\u4e00\u3002\u4e8c\u3002", ["\u4e00\u3002", "\u4e8c\u3002"]),
        (" \n", []),
    ],
)
def test_a_context_is_split_at_the_ends_of_sentences_and_lines(text, sentences):
    assert split_context(text) == sentences
