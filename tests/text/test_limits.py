"""How long a text is for a model, by its script."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragspan.text.limits import SIZE_OF_TOKEN, beginning, beginnings, size_of

TEXTS = {
    "English": ("The tower is 330 metres tall and stands in Paris.", 0.25),
    "Russian": ("Башня высотой 330 метров стоит в Париже.", 0.49),
    "Arabic": ("يبلغ ارتفاع البرج 330 مترا ويقع في باريس.", 0.71),
    "Chinese": ("这座塔高三百三十米，位于巴黎，由埃菲尔公司于一八八九年建成。", 1.3),
    "Japanese": ("この塔は高さ三百三十メートルで、パリに立っており。", 1.1),
    "Thai": ("หอคอยแห่งนี้สูง 330 เมตร ตั้งอยู่ในกรุงปารีส", 0.95),
    "Hindi": ("यह मीनार 330 मीटर ऊँची है और पेरिस में स्थित है।", 0.93),
}
"""Texts, and the tokens that a character of such texts takes in OpenAI's `cl100k_base`, as measured."""


@pytest.mark.parametrize(("text", "tokens"), TEXTS.values(), ids=TEXTS)
def test_the_size_is_about_four_for_a_token_in_every_script(text, tokens):
    assert size_of(text) / SIZE_OF_TOKEN / len(text) == pytest.approx(tokens, rel=0.25)


@given(text=st.text(st.characters()), room=st.integers(-1, 60))
def test_a_beginning_is_the_longest_that_fits(text, room):
    part = beginning(text, room)

    assert text.startswith(part)
    assert size_of(part) <= max(room, 0)
    assert part == text or size_of(text[: len(part) + 1]) > room


def test_texts_that_share_a_room_get_the_same_size_and_short_ones_stay_whole():
    assert beginnings(["塔" * 100, "t" * 100, "t"], 101) == ["塔" * 10, "t" * 50, "t"]
