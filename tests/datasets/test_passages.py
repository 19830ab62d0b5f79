"""The passages of an answer, however a table keeps them."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from ragspan.datasets.cells import CellError
from ragspan.datasets.passages import contexts_of
from ragspan.records import RetrievedContext


def texts_of(cell):
    return [context.text for context in contexts_of(cell)]


@pytest.mark.parametrize("cell", [None, math.nan, np.float32("nan"), pd.NA, pd.NaT, "", "  "])
def test_an_empty_cell_does_not_say_what_the_contexts_were(cell):
    assert contexts_of(cell) is None


@pytest.mark.parametrize("cell", [[], (), "[]", np.array([])])
def test_an_empty_list_says_that_there_were_none(cell):
    assert contexts_of(cell) == ()


@pytest.mark.parametrize(
    "cell",
    [["a", "b"], ("a", "b"), '["a", "b"]', ' ["a","b"] ', "['a', 'b']", np.array(["a", "b"]), pd.Series(["a", "b"])],
)
def test_lists_are_read_in_all_their_spellings(cell):
    assert texts_of(cell) == ["a", "b"]


@pytest.mark.parametrize(
    "text", ["one passage", "[1] as the source says", "[a, b]", "['a' 'b']", '{"text": "a"}', "[" * 10_000 + "]"]
)
def test_any_other_text_is_a_single_passage_as_it_stands(text):
    assert texts_of(text) == [text]


def test_objects_are_read_with_their_ids_scores_and_sources():
    contexts = contexts_of(
        [
            {"text": "a", "id": 7, "score": 0.5, "rank": 2, "source": "s", "metadata": {"page": 1, "nested": {}}},
            {"page_content": "b", "doc_id": "x"},
            {"content": "c"},
        ]
    )

    assert contexts == (
        RetrievedContext(text="a", id="7", score=0.5, rank=2, source="s", metadata={"page": 1}),
        RetrievedContext(text="b", id="x"),
        RetrievedContext(text="c"),
    )


def test_a_single_object_is_a_single_passage():
    assert texts_of({"text": "a"}) == ["a"]


def test_objects_of_frameworks_are_read_by_their_text():
    class Document:
        page_content = "a"

    assert texts_of([Document(), RetrievedContext(text="b")]) == ["a", "b"]


@pytest.mark.parametrize(
    ("cell", "reason"),
    [
        (["a", None], "nothing in place 2"),
        (["a", 7], "a int in place 2"),
        ([{"title": "secret"}], "an object in place 1 that has no text under any of text, page_content, content"),
        ('["a", ["secret"]]', "a list in place 2"),
        (7, "a int in place 1"),
    ],
)
def test_what_is_no_passage_is_told_by_its_place_and_not_quoted(cell, reason):
    with pytest.raises(CellError, match=reason) as error:
        contexts_of(cell)

    assert "secret" not in str(error.value)


@pytest.mark.parametrize("score", [10**400, math.inf, math.nan, True, "0.5"])
def test_what_is_no_finite_number_is_no_score(score):
    assert contexts_of([{"text": "a", "score": score}])[0].score is None


@pytest.mark.parametrize("text", ["[" + "1" * 5000 + "]", "['a', 0x" + "f" * 5000 + "]"])
def test_a_list_with_a_number_of_thousands_of_digits_is_a_single_text(text):
    assert texts_of(text) == [text]


def test_a_printed_list_that_fills_the_memory_is_told():
    with pytest.raises(CellError, match="write it as JSON"):
        contexts_of("[" + "'', " * 200_000 + "'']")
