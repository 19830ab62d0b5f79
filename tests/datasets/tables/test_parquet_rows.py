"""Parquet files."""

from __future__ import annotations

import subprocess
import sys

import pyarrow as pa
import pytest
from pyarrow import parquet

from ragspan.datasets.tables import open_file, table_of
from ragspan.exceptions import ConfigurationError, TableError


@pytest.fixture
def arrow():
    return pa.table(
        {
            "question": ["a", None, "c"],
            "prediction": [{"contexts": ["x", "y"]}, {"contexts": []}, None],
            "scores": [[1.0], None, []],
        }
    )


def test_lists_and_structures_are_read_over_several_row_groups(arrow, tmp_path, split):
    parquet.write_table(arrow, tmp_path / "t.parquet", row_group_size=1)
    table = open_file(tmp_path / "t.parquet")

    assert (list(table.columns), table.count) == (["question", "prediction", "scores"], 3)
    good, bad = split(table)
    assert [entry.data for entry in good] == arrow.to_pylist()
    assert ([entry.row for entry in good], bad) == ([1, 2, 3], [])


def test_arrow_tables_are_read_as_they_are(arrow, split):
    assert [entry.data for entry in split(table_of(arrow))[0]] == arrow.to_pylist()


def test_what_is_no_parquet_file_is_an_error(write_bytes):
    with pytest.raises(TableError, match="cannot be read as Parquet"):
        open_file(write_bytes(b"question\na\n", "t.parquet"))


def test_two_columns_of_the_same_name_are_an_error(tmp_path):
    twice = pa.Table.from_arrays([pa.array(["a"]), pa.array(["b"])], names=["answer", "answer"])
    parquet.write_table(twice, tmp_path / "t.parquet")

    with pytest.raises(TableError, match="has the column 'answer' 2 times"):
        open_file(tmp_path / "t.parquet")


def test_a_stream_of_parquet_is_read_through_a_file(arrow, tmp_path):
    parquet.write_table(arrow, tmp_path / "t.parquet")
    program = (
        "from ragspan.datasets.tables import open_file\n"
        "table = open_file('-', file_format='parquet')\n"
        "print(len(list(table.entries))); table.close()"
    )
    with (tmp_path / "t.parquet").open("rb") as file:
        done = subprocess.run([sys.executable, "-c", program], stdin=file, capture_output=True, text=True, check=True)

    assert done.stdout == "3\n"


def test_without_pyarrow_the_message_says_what_to_install(monkeypatch, write_bytes):
    monkeypatch.setitem(sys.modules, "pyarrow", None)

    with pytest.raises(ConfigurationError, match=r"ragspan\[datasets\]"):
        open_file(write_bytes(b"", "t.parquet"))


def test_a_small_file_with_a_cell_that_fills_the_memory_is_an_error_that_names_rows_and_column(tmp_path):
    cells = ["c", "a" * 100_000_000, "d"]
    rows = pa.table({"question": ["q"] * 3, "contexts": cells, "answer": ["r"] * 3})
    parquet.write_table(rows, tmp_path / "t.parquet", compression="zstd", row_group_size=2)

    with pytest.raises(TableError, match=r"rows 1 to 2: the column contexts expands from [\d,]+ to 100,0"):
        open_file(tmp_path / "t.parquet")


def test_a_list_of_nothing_that_fills_the_memory_is_an_error(tmp_path):
    nothing = pa.ListArray.from_arrays(pa.array([0, 20_000_000], pa.int32()), pa.nulls(20_000_000, pa.int8()))
    parquet.write_table(pa.table({"question": ["q"], "contexts": nothing}), tmp_path / "t.parquet")

    with pytest.raises(TableError, match="the column contexts"):
        open_file(tmp_path / "t.parquet")


def test_repetitive_texts_are_no_reason_to_refuse_a_file(tmp_path, split):
    rows = pa.table({"question": ["the same question"] * 100_000, "contexts": [["the same passage"]] * 100_000})
    parquet.write_table(rows, tmp_path / "t.parquet", compression="zstd")

    good, bad = split(open_file(tmp_path / "t.parquet"))
    assert (len(good), bad) == (100_000, [])


def test_a_cell_that_python_cannot_hold_is_a_bad_row_of_its_own(tmp_path, split):
    text = pa.array([b"a", b"\xff", b"c", b"d"]).view(pa.string())
    times = pa.array([0, 0, 10**13, 0], pa.timestamp("s"))
    parquet.write_table(pa.table({"answer": text, "started": times}), tmp_path / "t.parquet")

    good, bad = split(open_file(tmp_path / "t.parquet"))
    assert [entry.row for entry in good] == [1, 4]
    assert [(entry.row, entry.reason.split(" has ")[0]) for entry in bad] == [
        (2, "the column answer"),
        (3, "the column started"),
    ]
