from __future__ import annotations

import pytest

from ragspan.judges.overlap.grounding import probability

PASSAGE = (
    "Marie Curie was born in Warsaw on 7 Nov 1867. She discovered polonium and radium with Pierre Curie. In 1903 she "
    "received the Nobel Prize in Physics, with a purse of 12,500 francs. The lab opened at 5 p.m. on three days a week."
)


def test_a_sentence_taken_from_a_passage_has_the_full_score(grade):
    found = grade("She discovered polonium and radium with Pierre Curie.", "Something else.", PASSAGE)

    assert found.score == pytest.approx(1.0)
    assert found.context == 1


def test_a_sentence_of_which_nothing_is_there_scores_below_zero(grade):
    found = grade("Bananas ripen quicker beside avocados.", PASSAGE)

    assert found.score < 0
    assert found.context is None
    assert found.longest_gap == 5


@pytest.mark.parametrize(
    ("sentence", "numbers"),
    [
        ("Born in 1876.", ("1876",)),
        ("The purse was 12,000 francs and 5%.", ("12,000", "5")),
        ("The lab opened at 5 a.m. on four days.", ("5 a.m.", "four")),
    ],
)
def test_numbers_that_no_passage_holds_are_named_as_they_are_written(grade, sentence, numbers):
    assert grade(sentence, PASSAGE).numbers == numbers


@pytest.mark.parametrize(
    ("context", "sentence"),
    [
        ("The treatment lasts two weeks.", "The treatment lasts 14 days."),
        ("The race is 5 kilometres long.", "The race is 5000 metres long."),
        ("The city has 1.2 million people.", "The city has 1,200,000 people."),
    ],
)
def test_a_number_is_held_where_the_context_gives_the_amount_otherwise(grade, context, sentence):
    found = grade(sentence, context)

    assert (found.numbers, found.window, found.contradictions) == ((), 1.0, ())


def test_capitalised_words_are_names_unless_they_begin_the_sentence(grade):
    found = grade("Scholars say that Lise Meitner helped.", PASSAGE)

    assert found.names == ("Lise", "Meitner")
    assert found.words == ("Scholars", "helped")


def test_a_number_word_with_a_capital_is_no_name(grade):
    found = grade("Of these, Four remain.", PASSAGE)

    assert (found.numbers, found.names) == (("Four",), ())


def test_words_about_a_text_are_not_missed(grade):
    found = grade("According to the document, the author mentions polonium.", PASSAGE)

    assert (found.words, found.longest_gap) == ((), 0)
    assert found.window == 1.0


def test_a_word_of_the_question_counts_half_and_is_not_missed(grade):
    alone = grade("The spouse was Pierre.", PASSAGE)
    asked = grade("The spouse was Pierre.", PASSAGE, question="Who was her spouse?")

    assert (alone.words, asked.words) == (("spouse",), ())
    assert (alone.window, asked.window) == (0.5, 0.75)


def test_words_in_the_same_order_count_more_than_the_same_words_shuffled(grade):
    ordered = grade("she discovered polonium and radium", PASSAGE)
    shuffled = grade("radium and she polonium discovered", PASSAGE)

    assert ordered.window == shuffled.window
    assert ordered.trigrams > shuffled.trigrams
    assert ordered.score > shuffled.score


def test_the_opposite_of_a_structured_value_costs_more_than_anything_else(grade):
    passage = '{"name": "Blue Door", "OutdoorSeating": false}'

    said, denied = grade("Blue Door has outdoor seating.", passage), grade("Blue Door has no outdoor seating.", passage)

    assert said.conflicts == ("outdoor seating",)
    assert denied.conflicts == ()
    assert probability(said.score) < 0.5 < probability(denied.score)
