from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragspan.judges.llm.fencing import Fence, clean


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("plain\ttext\n", "plain\ttext\n"),
        ("a\r\nb\rc\u2028d\x0ce", "a\nb\nc\nd\ne"),
        ("\x00\x1b\x7f", "\ufffd" * 3),
        ("\u202eevil\u202c", "\ufffdevil\ufffd"),
        ("\ud800", "\ufffd"),
        ("hidden\U000e0041", "hidden\ufffd"),
        ("שלום नमस्ते 👩‍👩‍👧 naïve", "שלום नमस्ते 👩‍👩‍👧 naïve"),
    ],
)
def test_harmful_characters_become_visible_and_ordinary_text_stays(text, cleaned):
    assert clean(text) == cleaned


@given(st.text(st.characters()))
def test_cleaning_never_lengthens_and_changes_nothing_twice(text):
    assert len(clean(text)) <= len(text)
    assert clean(clean(text)) == clean(text)


@given(st.lists(st.text(st.characters()), max_size=4))
def test_the_code_depends_on_the_texts_alone(texts):
    assert Fence.around(texts) == Fence.around(list(texts))
    assert Fence.around(texts) != Fence.around([*texts, ""])


def test_moving_text_from_one_piece_to_the_next_changes_the_code():
    assert Fence.around(["ab", "c"]) != Fence.around(["a", "bc"])


def test_a_text_that_holds_the_code_loses_it():
    fence = Fence("0123456789abcdef0123")

    quoted = fence.quote("claims", "012345678" + fence.code + "9abcdef0123")

    assert quoted.count(fence.code) == 2
