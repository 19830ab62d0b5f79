from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ragspan.judges.overlap.evidence import (
    MAX_CHARACTERS,
    MAX_SENTENCES,
    Passage,
    WindowIndex,
    fair_shares,
    read_passages,
)

words = st.sampled_from("abcdefg")
sentences = st.lists(words, min_size=1, max_size=5).map(tuple)
passages = st.lists(st.lists(sentences, max_size=7).map(tuple), max_size=5)


def count_words(passage):
    return sum(map(len, passage.sentences))


@given(passages, st.lists(words, max_size=20))
def test_the_best_window_is_the_one_that_a_plain_search_finds(texts, wanted):
    index = WindowIndex([Passage(sentences=text, words=text) for text in texts], frozenset(wanted))

    held, passage = index.best(wanted)

    windows = [
        (at, set().union(*text[start : start + 3])) for at, text in enumerate(texts) for start in range(len(text))
    ]
    counts = [(sum(word in window for word in wanted), at) for at, window in windows]
    assert held == max((count for count, _ in counts), default=0)
    assert (passage is None and not held) or (held, passage) in counts


def test_a_window_never_spans_two_passages():
    index = WindowIndex(read_passages(["alpha", "beta"]), frozenset({"alpha", "beta"}))

    assert index.best(["alpha", "beta"]) == (1, 0)


def test_the_index_knows_only_words_that_a_passage_holds():
    index = WindowIndex(read_passages(["alpha beta"]), frozenset({"alpha", "gamma"}))

    assert "alpha" in index
    assert "gamma" not in index


@given(st.lists(st.integers(min_value=0, max_value=100)), st.integers(min_value=0, max_value=300))
def test_shares_use_the_whole_room_and_cut_only_the_longest(lengths, total):
    shares = fair_shares(lengths, total)

    assert all(share <= length for share, length in zip(shares, lengths, strict=True))
    assert total - len(lengths) < sum(shares) <= total or shares == lengths
    cut = [share for share, length in zip(shares, lengths, strict=True) if share < length]
    assert not cut or max(shares) <= min(cut) + 1


def test_short_passages_are_read_whole_beside_a_huge_one():
    huge, short = read_passages(["word " * MAX_CHARACTERS, "a short passage"])

    assert short.sentences == (("a", "short", "passag"),)
    assert 0 < len("word ") * count_words(huge) <= MAX_CHARACTERS


def test_neighbours_count_as_one_sentence_when_there_are_too_many():
    (passage,) = read_passages(["ab\n" * 3 * MAX_SENTENCES])

    assert len(passage.sentences) <= MAX_SENTENCES
    assert count_words(passage) == 3 * MAX_SENTENCES


def test_a_passage_of_json_is_read_as_its_statements():
    (passage,) = read_passages(['{"name": "Blue Door", "open": false}'])

    assert passage.structured
    assert passage.sentences == (("name", "blue", "door"), ("no", "open"))
    assert [flag.holds for flag in passage.flags] == [False]
