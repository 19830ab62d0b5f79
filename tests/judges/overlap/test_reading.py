"""What a reader says of a text is what splitting it into sentences and tokens says."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ragspan.judges.overlap.languages import ENGLISH, language
from ragspan.judges.overlap.reading import Reader
from ragspan.judges.overlap.sentences import split_sentences
from ragspan.judges.overlap.text import readable

PIECES = [
    *[
        "Mr.",
        "e.g.",
        "etc.",
        "U.S.",
        "D.C.",
        "p.m.",
        "5",
        "12",
        "1889",
        "1,000",
        "17:30",
        "1.",
        "(1.",
        "2)",
        "(a)",
        "b)",
    ],
    *[
        "pm",
        "a.m.",
        "cent",
        "per",
        "Per",
        "Cent",
        "The",
        "the",
        "It",
        "tower",
        "Tower",
        "not",
        "don't",
        "l'ami",
        "d'été",
    ],
    *[
        "-",
        "*",
        "#",
        "##",
        "|",
        "_",
        "**",
        "_21st_",
        "21st_",
        "_word_",
        ">",
        "•",
        "• ",
        "…",
        "。",
        "؟",
        "字",
        "ไทย",
        "१२",
    ],
    *[
        ".",
        "!",
        "?",
        '."',
        ".)",
        "._",
        ".***",
        "!?",
        '("',
        '"',
        "'",
        "«",
        "»",
        "%",
        "$",
        "€",
        "/",
        "&",
        "é",
        "½",
        "²",
        "ß",
    ],
    *[
        " ",
        " ",
        " ",
        " ",
        " ",
        " ",
        "\n",
        "\n",
        "  ",
        "     ",
        "\t",
        "\r\n",
        "\xa0",
        "\u2003",
        "\u200b",
        "\u0301",
        "\u00ad",
    ],
    *["24.", "Mai", "Januar", "am", "1 000 000", "1\u202f000", "z.B.", "я", "Я.", "г.", "и", "1\u00a0234,5", "17h30"],
]
texts = st.one_of(st.lists(st.sampled_from(PIECES), max_size=30).map("".join), st.text(max_size=60))


def read_plainly(text, of):
    read = [(of.keys(sentence), sentence) for sentence in split_sentences(text, language=of)]
    return [(keys, sentence) for keys, sentence in read if keys]


def letters(sentence):
    return "".join(filter(str.isalnum, sentence))


@pytest.mark.parametrize("code", ["en", "de", "fr", "ru", "tr", "ar", "ja", "und"])
@given(text=texts)
@example("1. Open. 2. Close at 5 pm - or at 6 p.m. sharp. It costs 20 per cent.\n- a\n- b")
@example("5  pm")
@example("- 1. It")
@example("etc.     The")
@example("_21st_ |* \n21st_")
@example("% €. x")
@example("1)")
@settings(max_examples=200, deadline=None)
def test_a_text_has_the_sentences_and_the_keys_that_it_has_when_it_is_read_plainly(code, text):
    text, of = readable(text), language(code)
    plainly = read_plainly(text, of)
    reader = Reader(of)

    for _ in range(2):  # the second time it knows the chunks
        read = reader.read(text, len(text) + 1)
        if read is not None:
            assert read.keys == [keys for keys, _ in plainly]
            written = [read.text(index) for index in range(len(read.keys))]
            assert list(map(of.keys, written)) == read.keys
            assert list(map(letters, written)) == [letters(sentence) for _, sentence in plainly]


@pytest.mark.parametrize(
    "text",
    [
        "The U.S. economy grew by 3 % in 2023, i.e. it didn't shrink.\n\n1. First, open it.\n2. Then close it at 5 p.m.!",
        "“It’s open”, she said — and it was… • One • Two",
        "Überraschung: naïve café, 1.500 €.",
        "Здравствуй, мир. Это хорошо.",
    ],
)
def test_ordinary_text_is_read_by_its_chunks(text):
    assert Reader(ENGLISH).read(readable(text), 100) is not None


def test_a_reader_forgets_what_it_knows_before_it_knows_too_much():
    reader = Reader(ENGLISH)

    for start in range(0, 200_000, 10_000):
        text = " ".join(f"x{number}." for number in range(start, start + 10_000))
        read = reader.read(text, 1 << 20)
        assert len(read.keys) == 10_000
    assert len(reader) <= 1 << 16


def test_a_text_that_may_have_too_many_sentences_is_not_read_by_its_chunks():
    assert Reader(ENGLISH).read("One. Two. Three.", 3) is None
