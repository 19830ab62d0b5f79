"""Which parts of prompts hold which texts, and what models said."""

import pytest

from ragspan.matching import PromptTexts, Speech

BETA = "Beta settles card payments after midnight; the run takes about four minutes on weekdays."
ALPHA = "Alpha stores customer profiles in Postgres and keeps them for seven years and a day."


def parts_with(prompts, *texts):
    return [{match.part: match.whole for match in matches} for matches in prompts.find(texts)]


def held_by(prompts, said):
    (held,) = Speech(prompts).held([said])
    return held


def test_a_text_is_found_in_every_part_that_has_it():
    prompts = PromptTexts([f"Grade this: {BETA}", f"{ALPHA}\n{BETA[:50]}...", "Something else."])

    assert parts_with(prompts, BETA, ALPHA) == [{0: True, 1: False}, {1: True}]


def test_parts_that_are_a_models_own_words_hold_no_texts():
    prompts = PromptTexts([BETA, ALPHA], silent=[0])

    assert parts_with(prompts, BETA, ALPHA) == [{}, {1: True}]


def test_no_text_goes_across_two_parts():
    prompts = PromptTexts([BETA[:45], BETA[45:]])

    assert parts_with(prompts, BETA) == [{0: False}]


@pytest.mark.parametrize(
    ("said", "is_held"),
    [
        ("At night.", True),
        ("At   night.", True),
        ("yes", False),
        ("", False),
        ("Beta works at night, every weekday of the year, and rests on Sundays.", False),
    ],
)
def test_what_a_model_said_is_held_if_two_words_of_it_are_there(said, is_held):
    prompts = PromptTexts(["Notes: At night. Answer from the notes, yes."])

    assert bool(held_by(prompts, said).free) is is_held


def test_what_a_text_that_was_found_holds_is_not_held_as_speech():
    prompts = PromptTexts([BETA, f"A model said that Beta settles card payments.\n{ALPHA}"])
    prompts.find([BETA])

    held = held_by(prompts, "settles card payments")

    assert (held.in_found, held.free) == ({0}, {1})


@pytest.mark.parametrize(
    ("said", "held"),
    [
        (f"{BETA[:50]}.", ({0}, set())),
        ("Beta settles card payments after midnight.", (set(), {0})),
        ("card payments", (set(), {0})),
    ],
)
def test_an_excerpt_that_is_just_what_a_model_said_is_its_own_words(said, held):
    prompts = PromptTexts([f"Notes:\n{BETA[:50]}."])
    assert parts_with(prompts, BETA) == [{0: False}]

    found = held_by(prompts, said)
    assert (found.free, found.in_found) == held


@pytest.mark.parametrize("part", ["Three\nFour", "1. Three\n2. Four", "- Three.", '{"note": "Three", "next": "Four"}'])
def test_one_word_is_held_if_it_is_a_line_or_field_of_its_own(part):
    assert held_by(PromptTexts(["There are three of them.", part]), "three").as_line == {1}


def test_one_sentence_of_several_is_enough():
    prompts = PromptTexts(["Note: it is three years."])

    assert held_by(prompts, "It is three years. The rest is of no use to anybody here.").free == {0}


def test_the_models_own_words_in_a_prompt_hold_what_it_said():
    assert held_by(PromptTexts(["I look for the pump."], silent=[0]), "I look for the pump.").free == {0}
