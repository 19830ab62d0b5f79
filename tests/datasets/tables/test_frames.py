"""What a program has in memory."""

from __future__ import annotations

import pandas as pd
import polars as pl
import pytest

from ragspan.datasets.tables import table_of
from ragspan.exceptions import TableError
from ragspan.records import RagRecord

ROWS = [{"question": "a", "contexts": ["x", "y"]}, {"question": None, "contexts": []}]


def test_rows_of_a_pandas_frame_have_their_columns_whatever_the_index(split):
    frame = pd.DataFrame(ROWS, index=[7, 7])
    table = table_of(frame)

    assert (list(table.columns), table.count) == (["question", "contexts"], 2)
    good, _ = split(table)
    assert [list(entry.data["contexts"]) for entry in good] == [["x", "y"], []]


def test_two_columns_of_a_frame_with_the_same_name_are_an_error():
    with pytest.raises(TableError, match="the data frame has the column 'a' 2 times"):
        table_of(pd.DataFrame([[1, 2]], columns=["a", "a"]))


@pytest.mark.parametrize("make", [pl.DataFrame, pl.LazyFrame])
def test_rows_of_a_polars_frame_are_read(make, split):
    assert [entry.data for entry in split(table_of(make(ROWS)))[0]] == ROWS


def test_generators_of_dictionaries_and_records_are_read_once(split):
    record = RagRecord(question="q", contexts=None, response="r")
    good, bad = split(table_of(row for row in [ROWS[0], record, "text"]))

    assert [entry.data for entry in good] == [ROWS[0], record]
    assert [(entry.row, entry.reason) for entry in bad] == [(3, "it is a str, but should be a dictionary or a record")]


class DataSet:
    """Has what Hugging Face's data sets have."""

    column_names = ("question", "contexts")

    def __iter__(self):
        return iter(ROWS)


def test_data_sets_with_named_columns_are_read(split):
    table = table_of(DataSet())

    assert list(table.columns) == ["question", "contexts"]
    assert [entry.data for entry in split(table)[0]] == ROWS


def test_a_collection_of_data_sets_is_an_error_that_names_them():
    with pytest.raises(TableError, match="choose one of train, test"):
        table_of({"train": DataSet(), "test": DataSet()})


@pytest.mark.parametrize("data", [{"question": ["a"]}, 7, None])
def test_what_is_no_table_is_an_error(data):
    with pytest.raises(TableError, match="no table: give"):
        table_of(data)


def test_an_endless_generator_is_not_read_to_its_end():
    table = table_of({"question": str(number)} for number in iter(int, 1))

    assert next(table.entries).data == {"question": "0"}


def test_data_sets_of_hugging_face_are_read(split):
    datasets = pytest.importorskip("datasets")

    assert [entry.data for entry in split(table_of(datasets.Dataset.from_list(ROWS)))[0]] == ROWS
