from __future__ import annotations

import json

import pytest

from ragspan.judges.overlap.structured import read_structure


def test_each_leaf_becomes_a_statement_with_the_keys_that_lead_to_it():
    text = '{"name": "Blue Door", "hours": {"Monday": "9:0-17:0"}, "reviews": [{"stars": 4.50}, {"stars": 5}]}'

    assert read_structure(text).statements == (
        *("name : Blue Door", "hours Monday : 9:0-17:0", "reviews stars : 4.50", "reviews stars : 5"),
    )


def test_true_says_the_path_false_denies_it_and_null_says_nothing():
    structure = read_structure('{"OutdoorSeating": true, "good_for_kids": "No", "HappyHour": null}')

    assert structure.statements == ("Outdoor Seating", "no good for kids")
    assert [(flag.name, flag.holds) for flag in structure.flags] == [
        *[("Outdoor Seating", True), ("good for kids", False), ("Happy Hour", None)],
    ]


def test_short_words_that_a_key_joins_are_found_joined_and_apart():
    assert read_structure('{"WiFi": "free"}').statements == ("Wi Fi WiFi : free",)


@pytest.mark.parametrize("text", ["", "plain text", "{not json}", "[1, 2", '"a string"', "42", "[" * 100_000])
def test_other_text_has_no_structure(text):
    assert read_structure(text) is None


def test_numbers_of_any_length_are_kept_as_they_are_written():
    digits = "9" * 10_000

    assert read_structure(f"[{digits}]").statements == (f" : {digits}",)


def test_statements_grow_no_further_than_a_few_times_the_text():
    text = json.dumps({"k" * 80: {"l" * 80: {"m" * 80: list(range(10_000))}}})

    statements = read_structure(text).statements

    assert 0 < sum(map(len, statements)) <= 4 * len(text)
