"""Single cells."""

from __future__ import annotations

import math
import uuid

import numpy as np
import pandas as pd
import pytest

from ragspan.evaluate.cells import (
    CellError,
    background_of,
    cell_text,
    contexts_of,
    identifier_of,
    is_missing,
    nanoseconds_of,
)
from ragspan.records import RetrievedContext

HUGE = 10**5000
NOON = 1_577_880_000_000_000_000
PRINTED = (
    "['secret'\n 'b']",
    "array(['secret', 'b'], dtype=object)",
    "[nan, 'secret']",
    "['secret', ..., 'b']",
    "[Document(page_content='secret')]",
)
"""Lists as NumPy, pandas and frameworks print them."""
NO_TEXT, NO_TIME = "but should be text", "is not a time"


@pytest.mark.parametrize(
    ("read", "cell", "value"),
    [
        *[(cell_text, cell, text) for cell, text in [("a", "a"), ("", ""), (7, "7"), (np.float64(0.5), "0.5")]],
        *[(cell_text, cell, None) for cell in (None, pd.NA)],
        *[(identifier_of, cell, text) for cell, text in [(7, "7"), (uuid.UUID(int=1), str(uuid.UUID(int=1)))]],
        *[(identifier_of, cell, None) for cell in (" ", math.nan)],
        *[(is_missing, cell, False) for cell in (HUGE, 10**400, "N/A for now", "nothing", "Na", "")],
        *[(is_missing, cell, True) for cell in ("N/A", " n/a ", "NA", "#N/A", "#NA", "NULL", "-NaN", "<NA>")],
    ],
    ids=lambda value: type(value).__name__,  # the huge number itself cannot be printed
)
def test_a_cell_is_read_as_text_or_identifier(read, cell, value):
    assert read(cell) == value


@pytest.mark.parametrize(
    "cell",
    ["2020-01-01T12:00:00", "2020-01-01 13:00:00+01:00", NOON, pd.Timestamp("2020-01-01 12:00")],
)
def test_times_are_read_as_nanoseconds_and_as_utc_without_a_zone(cell):
    assert nanoseconds_of(cell) == NOON


@pytest.mark.parametrize(
    ("read", "cells", "message"),
    [
        *[(cell_text, [cell], NO_TEXT) for cell in (["a"], {"a": 1}, b"a")],
        *[(nanoseconds_of, [cell], NO_TIME) for cell in ("noon", -1, 1.5, 2**63, True)],
        *[(nanoseconds_of, [cell], NO_TIME) for cell in (HUGE, -HUGE, "1" * 5000)],
        (contexts_of, [["a", 7]], "an int in place 2"),
        (contexts_of, [["a", None, 7]], "an int in place 3"),
        *[(contexts_of, [text], "save the table as JSONL or Parquet") for text in PRINTED],
        (contexts_of, [[{"title": "secret"}]], "in place 1 that has no text: .* one of text, page_content, content"),
        (contexts_of, ['["a", ["secret"]]'], "a list in place 2"),
        (contexts_of, [7], "an int in place 1"),
    ],
)
def test_what_a_record_cannot_hold_is_an_error_that_quotes_nothing(read, cells, message):
    with pytest.raises(CellError, match=message) as error:
        read(*cells)

    assert "secret" not in str(error.value)


def texts_of(cell):
    return [context.text for context in contexts_of(cell)]


@pytest.mark.parametrize("cell", [None, math.nan, ""])
def test_an_empty_cell_does_not_say_what_the_contexts_were(cell):
    assert contexts_of(cell) is None


@pytest.mark.parametrize("cell", [[], (), "[]", np.array([])])
def test_an_empty_list_says_that_there_were_none(cell):
    assert contexts_of(cell) == ()


@pytest.mark.parametrize(
    "cell",
    [["a", "b"], '["a", "b"]', "['a', 'b']", np.array(["a", "b"])],
)
def test_lists_are_read_in_all_their_spellings(cell):
    assert texts_of(cell) == ["a", "b"]


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


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        (None, ()),
        (["a", {"text": "b", "kind": "tool"}], (("a", "other"), ("b", "tool"))),
        ('[{"text": "b", "kind": "history"}, " ", {"text": "c", "kind": "guess"}]', (("b", "history"), ("c", "other"))),
    ],
)
def test_background_is_read_as_contexts_are_with_its_kind(cell, expected):
    assert tuple((one.text, one.kind) for one in background_of(cell)) == expected
