"""How long a text is for a model, by its script, and how much of one is read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragspan.judges.selection import beginnings
from ragspan.text.keys import tokens
from ragspan.text.languages import guess, languages_of
from ragspan.text.limits import SIZE_OF_TOKEN, beginning, characters_read, fair_limit, size_of
from ragspan.text.responses import is_refusal, read_claims

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


@pytest.mark.parametrize(
    ("read", "room", "words"),
    [
        (guess, 1_500, " der die und nicht"),
        (lambda text: languages_of("12", [text]).contexts, 600, " der die und"),  # all texts of a record together
        (lambda text: languages_of("12", [*["12"] * 7, text]).contexts, 600, " der die und"),
    ],
    ids=["one text", "a context", "the eighth context"],
)
def test_a_language_is_read_from_the_beginning_and_needs_some_of_its_words(read, room, words):
    fits = "1" * (room - len(words)) + words

    assert read(fits).code == "de"
    for lacking in (f"1{fits}", fits.replace(" die", "")):
        known = read(lacking)
        assert known is None or known.code == "en"


def test_the_language_of_the_ninth_context_is_not_asked():
    assert languages_of("12", [*["12"] * 8, " der die und nicht"]).contexts.code == "en"


@pytest.mark.parametrize(
    ("response", "claims"),
    [
        ("Cats sleep. " * 401, 400),
        ("Cats sleep. " * 399 + "Yes. " * 5 + "Dogs run. Dogs run.", 400),
        ("a. " * 9_994 + "Cats sleep here.", 1),
    ],
)
def test_how_much_of_a_response_is_read(response, claims):
    assert len(read_claims(response)) == claims


@pytest.mark.parametrize(
    ("response", "is_one"),
    [
        ("I don't know. The cat sleeps.", True),
        ("I don't know. The cat sleeps. The dog runs.", False),
        (f"I don't know. {' ' * 4_000}The cat sleeps. The dog runs.", True),
        ("", False),
        (f"{' ' * 3_987}I don't know.", True),
        (f"{' ' * 3_999}I don't know.", False),
    ],
)
def test_a_refusal_is_half_of_what_is_said_at_the_beginning(response, is_one):
    assert is_refusal(response) is is_one


@pytest.mark.parametrize(
    ("text", "lengths"),
    [("1" * 64, [64]), ("1" * 65, [64, 1]), ("字" * 4096, [4096]), ("字" * 4097, [4096, 1])],
    ids=lambda value: str(value)[:9],
)
def test_a_token_is_cut_where_it_is_too_long(text, lengths):
    assert list(map(len, tokens(text))) == lengths


@pytest.mark.parametrize(
    ("lengths", "room", "limit"),
    [([3, 5], 8, 8), ([3, 5], 7, 4), ([10, 10, 1], 11, 5), ([], 5, 5), ([9], 0, 0), ([4, 4], 1, 0)],
)
def test_what_texts_are_cut_to(lengths, room, limit):
    assert fair_limit(lengths, room) == limit
    assert characters_read(["a" * length for length in lengths], room) == [min(length, limit) for length in lengths]


def test_of_other_scripts_fewer_characters_are_read():
    assert characters_read(["塔" * 100, "t" * 100], 200) == [33, 33]
    assert characters_read(["é" * 100], 100) == [50]
