from __future__ import annotations

import pytest

from ragspan.judges.overlap.contexts import ContextReader
from ragspan.judges.overlap.coverage import cover, main_words
from ragspan.judges.overlap.keys import key, keys

CONTEXTS = ContextReader().read(
    ["The visa costs 80 euros. The visa takes fifteen days.", "The zoo keeps pandas. The zoo closes at night."]
)


def covered(answer, question):
    return cover(frozenset(keys(answer)), CONTEXTS, frozenset(keys(question)))


def test_the_main_words_come_from_the_sentences_that_share_words_with_the_question():
    main = main_words(CONTEXTS, frozenset(keys("How much is the visa?")))

    assert set(main) == {key(word) for word in ("visa", "costs", "80", "euros", "fifteen", "days")}


def test_without_a_question_all_sentences_count():
    assert key("pandas") in main_words(CONTEXTS, frozenset())


def test_an_answer_with_all_main_words_covers_everything():
    full = covered("The visa costs 80 euros and takes 15 days.", "What about the visa?")

    assert (full.share, full.missing) == (1.0, ())


def test_what_an_answer_leaves_out_is_named_as_the_contexts_write_it():
    partial = covered("The visa costs 80 euros.", "What about the visa?")

    assert partial.share == pytest.approx(4 / 6)
    assert set(partial.missing) == {"fifteen", "days"}


def test_contexts_without_words_cover_nothing():
    assert cover(frozenset({"visa"}), ContextReader().read(["", "..."]), frozenset({"visa"})).share == 0.0
