"""Tables: frames and iterables, CSV, JSON, Parquet, and the text that they are read from."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet

from ragspan.evaluate.tables import table_of
from ragspan.exceptions import ConfigurationError, TableError
from ragspan.records import RagRecord

FILES = json.loads(Path(__file__).with_name("files.json").read_text("utf-8"))
"""What is in a file, its name, and its rows."""
ROWS = [{"question": "a", "contexts": ["x", "y"]}, {"question": None, "contexts": []}]


@pytest.fixture
def read(write_bytes, split):
    """The rows of a file with these bytes, good and bad."""

    def read_file(data, name="table.csv"):
        return split(table_of(write_bytes(data, name)))

    return read_file


def data_of(entries):
    return [data for _, data in entries]


def numbers(entries):
    return [number for number, _ in entries]


# In memory ------------------------------------------------------------------------------------------------------------


class DataSet:
    """Has what Hugging Face's data sets have."""

    column_names = ("question", "contexts")

    def __iter__(self):
        return iter(ROWS)


def pandas_frame(rows):
    return pd.DataFrame(rows, index=[7, 7])


@pytest.mark.parametrize("make", [pandas_frame, pl.DataFrame, lambda _: DataSet()])
def test_rows_of_frames_and_data_sets_are_read(make, split):
    table = table_of(make(ROWS))

    assert list(table.columns) == ["question", "contexts"]
    good, _ = split(table)
    assert [list(values["contexts"]) for values in data_of(good)] == [["x", "y"], []]
    assert good[0][1]["question"] == "a"


def test_generators_of_dictionaries_and_records_are_read_once_and_not_to_their_end(split):
    record = RagRecord(question="q", contexts=None, response="r")
    good, bad = split(table_of(row for row in [ROWS[0], record, "text"]))

    assert data_of(good) == [ROWS[0], record]
    assert bad == [(3, "it is a str, but should be a dictionary or a record")]
    endless = table_of({"question": str(number)} for number in iter(int, 1))
    assert next(endless.rows) == {"question": "0"}


@pytest.mark.parametrize(("data", "kind"), [({"question": ["a"]}, "a dict"), (7, "an int")])
def test_what_is_no_table_is_an_error(data, kind):
    with pytest.raises(TableError, match=f"^{kind} is not a table: give"):
        table_of(data)


# Files ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "name", "message"),
    [
        (None, "absent.csv", "No such file"),
        (b"question\na\n", "t.parquet", "cannot be read as Parquet"),
        (b"\xef\xbb\xbf\n", "t.csv", "is empty"),
        (b'"a"b,c\nx,y\n', "t.csv", "the header is not CSV \\(',' expected after '\"'\\): save it as CSV in UTF-8"),
        (gzip.compress(b"question\n" * 1000, mtime=0), "t.csv.gz", "is not UTF-8 text: unpack it"),
        (b"a,b,a\n", "t.csv", "two columns of one name: a, b, a"),
        (b'[{"a": 1}\n{"a": 2}]', "t.json", "is not JSON: Expecting ',' delimiter, at line 2, column 1"),
        (b'{\n "data": []\n}\n', "t.json", "a JSON object of several lines: write one object a line"),
        (b"[" * 100_000, "t.json", "is not JSON: nested too deep"),
    ],
)
def test_a_file_that_is_no_table_is_an_error(read, tmp_path, data, name, message):
    with pytest.raises(TableError, match=message):
        table_of(tmp_path / name) if data is None else read(data, name)


@pytest.mark.parametrize(("data", "name", "rows"), FILES)
def test_a_file_is_read_by_its_ending_and_its_options(read, data, name, rows):
    good, bad = read(data.encode(), name)

    assert (data_of(good), bad) == (rows, [])


# CSV ------------------------------------------------------------------------------------------------------------------


def test_rows_are_dictionaries_with_their_number_and_line(read):
    long = "s" * 200_000
    good, bad = read(b'question,answer\n"a\nb",r\n\nc,%s\n' % long.encode())

    assert data_of(good) == [{"question": "a\nb", "answer": "r"}, {"question": "c", "answer": long}]
    assert (numbers(good), bad) == ([1, 2], [])


@pytest.mark.parametrize(
    ("rows", "kept", "told"),
    [
        (b"b\na,r\n", [2], "it has 1 cells, but the header has 2"),
        (b'"a"b,r\nc,s\n', [2], "it is not CSV: ',' expected after '\"'"),
        (b"b,%1\nc,s\n", [2], "it is not CSV: field larger than field limit (16777216)"),
    ],
)
def test_a_malformed_row_is_a_bad_row_and_reading_goes_on(read, rows, kept, told):
    good, (bad,) = read(b"question,answer\n" + rows.replace(b"%1", b"1" * (2**24 + 1)))

    assert numbers(good) == kept
    assert bad == (1, told)


# JSON -----------------------------------------------------------------------------------------------------------------


def test_a_bad_line_is_a_bad_row_that_quotes_nothing_and_blank_lines_are_nothing(read):
    good, bad = read(b'{"question": "a"}\n\n{"answer": secret}\n[1]\n' + b"[" * 100_000 + b'\n{"a": 1}', "t.jsonl")

    assert (numbers(good), numbers(bad)) == ([1, 5], [2, 3, 4])
    assert data_of(bad) == [
        "it is not JSON: Expecting value, at column 12",
        "it is a list, but should be a dictionary or a record",
        "it is not JSON: nested too deep, or with a number of thousands of digits",
    ]


# Parquet --------------------------------------------------------------------------------------------------------------


def test_lists_and_structures_are_read_over_several_row_groups(tmp_path, split):
    rows = [
        {"question": "a", "prediction": {"contexts": ["x", "y"]}, "scores": [1.0]},
        {"question": None, "prediction": {"contexts": []}, "scores": None},
        {"question": "c", "prediction": None, "scores": []},
    ]
    parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "t.parquet", row_group_size=1)
    table = table_of(tmp_path / "t.parquet")

    assert (list(table.columns), table.share_read(3)) == (["question", "prediction", "scores"], 1)
    good, bad = split(table)
    assert (data_of(good), numbers(good), bad) == (rows, [1, 2, 3], [])


def test_parquet_that_cannot_be_read_to_its_end_and_a_missing_package_are_errors(tmp_path, monkeypatch):
    times = pa.table({"t": pa.array([2**60], pa.timestamp("ms"))})
    parquet.write_table(times, tmp_path / "t.parquet")
    with pytest.raises(TableError, match=r"t\.parquet cannot be read to its end: "):
        table_of(tmp_path / "t.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ConfigurationError, match=r'Parquet needs pyarrow: pip install "ragspan\[datasets\]"'):
        table_of(tmp_path / "t.parquet")
