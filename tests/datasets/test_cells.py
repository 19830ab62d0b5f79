"""Single cells."""

from __future__ import annotations

import datetime as dt
import math
import uuid
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from ragspan.datasets.cells import (
    CellError,
    contexts_of,
    identifier_of,
    is_missing,
    metadata_of,
    nanoseconds_of,
    span_of,
    text_of,
)
from ragspan.records import RetrievedContext

NOON = 1_577_880_000_000_000_000


@pytest.mark.parametrize(
    ("cell", "text"), [("a", "a"), ("", ""), (7, "7"), (np.float64(0.5), "0.5"), (None, None), (pd.NA, None)]
)
def test_texts_and_numbers_are_text(cell, text):
    assert text_of(cell) == text


@pytest.mark.parametrize("cell", [["a"], {"a": 1}, b"a"])
def test_anything_else_is_no_text(cell):
    with pytest.raises(CellError, match="but should be text"):
        text_of(cell)


@pytest.mark.parametrize(
    ("cell", "identifier"), [(7, "7"), (" ", None), ([], None), (uuid.UUID(int=1), str(uuid.UUID(int=1)))]
)
def test_what_identifies_nothing_is_no_identifier(cell, identifier):
    assert identifier_of(cell) == identifier


@pytest.mark.parametrize("cell", [{"a": 1, "b": []}, '{"a": 1, "b": []}'])
def test_plain_entries_of_metadata_are_kept(cell):
    assert metadata_of(cell) == {"a": 1}


@pytest.mark.parametrize("cell", [None, "text", "[1]", 7])
def test_what_is_no_dictionary_is_no_metadata(cell):
    assert metadata_of(cell) == {}


@pytest.mark.parametrize(
    "cell",
    [
        "2020-01-01T12:00:00",
        "2020-01-01T12:00:00Z",
        "2020-01-01 13:00:00+01:00",
        NOON,
        str(NOON),
        np.int64(NOON),
        dt.datetime(2020, 1, 1, 12),  # noqa: DTZ001  without a zone, as data frames have them
        pd.Timestamp("2020-01-01 12:00"),
    ],
)
def test_times_are_read_as_nanoseconds_and_as_utc_without_a_zone(cell):
    assert nanoseconds_of(cell) == NOON


@pytest.mark.parametrize("cell", ["noon", -1, 1.5, 2**63, True])
def test_what_is_no_time_is_told(cell):
    with pytest.raises(CellError, match="is no time"):
        nanoseconds_of(cell)


def test_a_missing_time_is_none():
    assert nanoseconds_of(pd.NaT) is nanoseconds_of(None) is None


def test_ids_of_a_span_are_hexadecimal_as_in_trace_contexts():
    span = span_of("4BF92F3577B34DA6A3CE929D0E0E4736", "00f067aa0ba902b7")

    assert (f"{span.trace_id:032x}", f"{span.span_id:016x}") == ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7")
    assert span_of(None, "") is None


@pytest.mark.parametrize(
    ("trace_id", "span_id"),
    [
        ("0" * 32, "1" * 16),
        ("1" * 32, None),
        ("1" * 31, "1" * 16),
        ("1" * 32, "0x" + "1" * 14),
        ("1" * 32, "g" * 16),
        (1, 2),
    ],
)
def test_ids_that_are_none_are_told(trace_id, span_id):
    with pytest.raises(CellError, match="hexadecimal digits, or zero"):
        span_of(trace_id, span_id)


HUGE = 10**5000


@pytest.mark.parametrize(
    "cell", [HUGE, -HUGE, "1" * 5000, Fraction(HUGE)], ids=["integer", "negative", "text", "ratio"]
)
def test_a_number_of_thousands_of_digits_is_no_time(cell):
    with pytest.raises(CellError, match="is no time"):
        nanoseconds_of(cell)


def test_a_number_of_thousands_of_digits_is_no_text_and_identifies_nothing():
    with pytest.raises(CellError, match="is a number of too many digits"):
        text_of(HUGE)
    assert (identifier_of(HUGE), is_missing(HUGE), is_missing(10**400)) == (None, False, False)


@pytest.mark.parametrize("cell", ["", "  "])
def test_a_blank_text_is_a_time_that_is_missing(cell):
    assert nanoseconds_of(cell) is None


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
