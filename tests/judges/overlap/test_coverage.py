from __future__ import annotations

import pytest

from ragspan.judges.overlap.context_reader import ContextReader
from ragspan.judges.overlap.coverage import are_useful, cover, main_words, shared_with_response
from ragspan.judges.overlap.shared_words import SharedWords
from ragspan.text.keys import key, keys
from ragspan.text.sentences import read_sentence

READ = ContextReader().read
CONTEXTS = READ(
    ["The visa costs 80 euros. The visa takes fifteen days.", "The zoo keeps pandas. The zoo closes at night."]
)


def covered(answer, question):
    return cover(frozenset(keys(answer)), CONTEXTS, frozenset(keys(question)))


def test_the_main_words_come_from_the_sentences_that_share_words_with_the_question():
    main = main_words(CONTEXTS, frozenset(keys("How much is the visa?")))

    assert set(main) == {key(word) for word in ("visa", "costs", "80", "euros", "fifteen", "days")}


def test_what_an_answer_leaves_out_is_named_as_the_contexts_write_it():
    partial = covered("The visa costs 80 euros.", "What about the visa?")

    assert (partial.share, partial.words) == (pytest.approx(3 / 5), 5)
    assert set(partial.missing) == {"fifteen", "days"}


def shared(response, *texts):
    """`response` has a claim a line."""
    contexts = READ(texts)
    return shared_with_response(SharedWords(list(map(read_sentence, response.splitlines())), contexts), contexts)


def useful(response, *texts):
    return are_useful(shared(response, *texts))


def test_the_context_that_the_response_was_taken_from_is_useful():
    assert useful(
        "The visa costs 80 euros.",
        "The zoo keeps pandas and closes at night.",
        "For tourists the visa costs 80 euros.",
        "A visa is a document.",
    ) == [False, True, False]


def test_two_contexts_that_say_the_same_are_both_useful():
    assert useful("The visa costs 80 euros.", "The visa costs 80 euros.", "The visa costs about 80 euros.") == [
        True,
        True,
    ]


def test_word_pairs_are_shared_only_in_their_order():
    same, turned = shared("red house", "a red house", "a house red")

    assert same - turned == pytest.approx(1.0)


def test_a_rare_word_counts_more_than_one_that_all_contexts_hold():
    fee, panda, neither = shared("visa\nfee", "visa fee", "visa panda", "visa")

    assert fee > 2 * panda
    assert panda == neither > 0
