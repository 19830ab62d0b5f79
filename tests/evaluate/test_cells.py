"""Single cells."""

from __future__ import annotations

import math
import uuid

import numpy as np
import pandas as pd
import pytest

from ragspan.evaluate.records import CellError, cell_text, contexts_of, identifier_of, is_missing
from ragspan.evaluate.sources import nanoseconds_of
from ragspan.records import RetrievedContext

NOON = 1_577_880_000_000_000_000


@pytest.mark.parametrize(
    ("read", "cell", "value"),
    [
        *[(cell_text, cell, text) for cell, text in [("a", "a"), (7, "7"), (np.float64(0.5), "0.5"), (pd.NA, None)]],
        *[(identifier_of, cell, text) for cell, text in [(7, "7"), (uuid.UUID(int=1), str(uuid.UUID(int=1)))]],
        *[(identifier_of, cell, None) for cell in (" ", math.nan)],
        *[(is_missing, cell, False) for cell in (10**5000, "N/A for now", "nothing", "Na", "")],
        *[(is_missing, cell, True) for cell in (" n/a ", "#N/A", "NULL", "-NaN", "<NA>", pd.NaT)],
        *[(nanoseconds_of, cell, NOON) for cell in ("2020-01-01T12:00:00Z", "2020-01-01 13:00:00+01:00", str(NOON))],
        *[(nanoseconds_of, cell, None) for cell in (None, " ")],
        *[(contexts_of, cell, None) for cell in (None, math.nan, "")],
        *[(contexts_of, cell, ()) for cell in ([], "[]", np.array([]))],
    ],
    ids=lambda value: type(value).__name__,  # the huge number itself cannot be printed
)
def test_a_cell_is_read_as_what_a_record_needs(read, cell, value):
    assert read(cell) == value


@pytest.mark.parametrize(
    ("read", "cell", "message"),
    [
        *[(cell_text, cell, "but should be text") for cell in (["a"], {"a": 1}, b"a")],
        (contexts_of, [{"title": "secret"}], "cannot be read: .* one of text, page_content, content"),
        *[(contexts_of, cell, "cannot be read") for cell in (["a", None, 7], '["a", ["secret"]]', 7)],
        (contexts_of, """["Bo's secret." 'b']""", "as NumPy prints it"),
    ],
)
def test_what_a_record_cannot_hold_is_an_error_that_quotes_nothing(read, cell, message):
    with pytest.raises(CellError, match=message) as error:
        read(cell)

    assert "secret" not in str(error.value)


@pytest.mark.parametrize("cell", [["a", "b"], '["a", "b"]', "['a', 'b']", np.array(["a", "b"])])
def test_lists_are_read_in_all_their_spellings(cell):
    assert [context.text for context in contexts_of(cell)] == ["a", "b"]


def test_objects_are_read_with_their_ids_scores_and_sources():
    metadata = {"page": 1, "nested": {}}
    first = {"text": "a", "id": 7, "score": 0.5, "rank": 2, "source": "s", "metadata": metadata}

    assert contexts_of([first, {"page_content": "b", "doc_id": "x"}, {"content": "c"}]) == (
        RetrievedContext(text="a", id="7", score=0.5, rank=2, source="s", metadata={"page": 1}),
        RetrievedContext(text="b", id="x"),
        RetrievedContext(text="c"),
    )
