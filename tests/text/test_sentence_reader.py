"""What a reader says of a text is what splitting it into sentences and tokens says."""

from __future__ import annotations

from itertools import groupby

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ragspan.text.keys import readable
from ragspan.text.languages import ENGLISH, language
from ragspan.text.sentences import END, SentenceReader, split_sentences, written

_PIECES = (
    "Mr.¦e.g.¦etc.¦U.S.¦D.C.¦p.m.¦5¦12¦1889¦1,000¦17:30¦1.¦(1.¦2)¦(a)¦b)¦pm¦a.m.¦cent¦per¦Per¦Cent¦The¦the¦It¦"
    "tower¦Tower¦not¦don't¦l'ami¦d'été¦-¦*¦#¦##¦|¦**¦_word_¦>¦•¦• ¦…¦。¦؟¦字¦ไทย¦१२¦.¦!¦?¦.\"¦.)¦._¦.***¦!?¦(\"¦\"¦"
    "'¦«¦»¦/¦&¦é¦²¦ß¦ ¦ ¦ ¦ ¦ ¦ ¦\n¦\n¦\t¦\r\n¦\xa0¦\u2003¦\u200b¦\u0301¦\xad¦24.¦Mai¦Januar¦am¦1 000 000¦1\u202f000¦"
    "z.B.¦я¦Я.¦г.¦и¦1\xa0234,5¦17h30"
)
PIECES = _PIECES.split("¦")
texts = st.lists(st.sampled_from(PIECES), max_size=30).map("".join).map(str.strip)


def read_plainly(text, of):
    read = [(of.keys(sentence), sentence) for sentence in split_sentences(text, language=of)]
    return [(keys, sentence) for keys, sentence in read if keys]


def sentences_of(keys):
    return [" ".join(found).split() for ends, found in groupby(keys, END.__eq__) if not ends]


@pytest.mark.parametrize("code", ["en", "de", "fr", "ru", "tr", "ar", "ja", "und"])
@given(text=texts)
@example("1. Open. 2. Close at 5 pm - or at 6 p.m. sharp. It costs 20 per cent.\n- a\n- b")
@example("- 1. It")
@example("1)")
@settings(max_examples=200, deadline=None, derandomize=True)
def test_a_text_has_the_sentences_and_the_keys_that_it_has_when_it_is_read_plainly(code, text):
    of = language(code)
    reader = SentenceReader(of)

    for _ in range(2):  # the second time it knows the chunks
        read = sentences_of(reader.read(text))
        sentences = written(text, of, len(read))
        assert len(read) == len(sentences)
        plainly = read_plainly(readable(text), of)
        assert read == [keys for keys, _ in plainly]
        assert sentences == [sentence for _, sentence in plainly]


def test_a_reader_forgets_what_it_knows_before_it_knows_too_much():
    reader = SentenceReader(ENGLISH)

    for start in range(0, 80_000, 10_000):
        text = " ".join(f"x{number}." for number in range(start, start + 10_000))
        assert reader.read(text).count(END) == 10_000
    assert len(reader) <= 1 << 16
