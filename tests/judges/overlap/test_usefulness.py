from __future__ import annotations

import pytest

from ragspan.judges.overlap.evidence import read_passages
from ragspan.judges.overlap.text import keys
from ragspan.judges.overlap.usefulness import are_useful, shared_with_answer


def useful(answer, *passages):
    return are_useful(shared_with_answer([keys(answer)], read_passages(passages)))


def test_the_passage_that_the_answer_was_taken_from_is_useful():
    assert useful(
        "The visa costs 80 euros.",
        "The zoo keeps pandas and closes at night.",
        "For tourists the visa costs 80 euros.",
        "A visa is a document.",
    ) == [False, True, False]


def test_two_passages_that_say_the_same_are_both_useful():
    assert useful("The visa costs 80 euros.", "The visa costs 80 euros.", "The visa costs about 80 euros.") == [
        True,
        True,
    ]


def test_no_passage_is_useful_for_an_answer_from_nowhere():
    assert useful("Bananas ripen beside avocados.", "The zoo keeps pandas.", "The visa costs 80 euros.") == [
        False,
        False,
    ]


def test_an_answer_without_words_makes_no_passage_useful():
    assert useful("...", "The zoo keeps pandas.") == [False]


def test_word_pairs_are_shared_only_in_their_order():
    same, turned = shared_with_answer([keys("red house")], read_passages(["a red house", "a house red"]))

    assert same - turned == pytest.approx(1.0)


def test_a_rare_word_counts_more_than_one_that_all_passages_hold():
    passages = read_passages(["visa fee", "visa panda", "visa"])

    fee, panda, neither = shared_with_answer([["visa"], ["fee"]], passages)

    assert fee > 2 * panda
    assert panda == neither > 0
