"""What users see of CSV files, well-formed or not."""

from __future__ import annotations

import csv
import threading

import pytest

from ragspan.datasets.tables import csv_rows, open_file
from ragspan.datasets.tables.csv_rows import csv_table, most_frequent_delimiter
from ragspan.exceptions import ConfigurationError, TableError


def test_rows_are_dictionaries_with_their_number_and_line(write_bytes, split):
    good, bad = split(open_file(write_bytes(b'question,answer\n"a\nb",r\n\nc,s\n')))

    assert [entry.data for entry in good] == [{"question": "a\nb", "answer": "r"}, {"question": "c", "answer": "s"}]
    assert [(entry.row, entry.line) for entry in good] == [(1, 2), (2, 5)]
    assert bad == []


def test_ragged_rows_are_bad_rows_with_their_line(write_bytes, split):
    good, bad = split(open_file(write_bytes(b"question,answer\na,r\nb\nc,s,t\nd,u\n")))

    assert [entry.row for entry in good] == [1, 4]
    assert list(map(str, bad)) == [
        "row 2 (line 3): it has 1 cells, but the header has 2",
        "row 3 (line 4): it has 3 cells, but the header has 2",
    ]


def test_malformed_quotes_are_bad_rows_and_reading_goes_on(write_bytes, split):
    good, bad = split(open_file(write_bytes(b'question,answer\n"a"b,r\nc,s\n')))

    assert [entry.data["question"] for entry in good] == ["c"]
    assert [(entry.row, entry.line) for entry in bad] == [(1, 2)]
    assert "no CSV" in bad[0].reason


def test_a_quote_that_is_never_closed_is_a_bad_row(write_bytes, split):
    good, bad = split(open_file(write_bytes(b'question,answer\na,r\n"b,s\n')))

    assert [entry.data["question"] for entry in good] == ["a"]
    assert [entry.row for entry in bad] == [2]


def test_a_nul_byte_makes_a_bad_row(write_bytes, split):
    good, bad = split(open_file(write_bytes(b"question,answer\na,r\0\nb,s\n")))

    assert [entry.data["question"] for entry in good] == ["b"]
    assert "NUL" in bad[0].reason


def test_a_byte_order_mark_is_no_part_of_the_first_column(write_bytes):
    table = open_file(write_bytes(b"\xef\xbb\xbfquestion,answer\na,r\n"))

    assert list(table.columns) == ["question", "answer"]
    table.close()


def test_a_column_that_stands_twice_in_the_header_is_an_error(write_bytes):
    with pytest.raises(TableError, match="has the column 'answer' 2 times"):
        open_file(write_bytes(b"question,answer,answer\n"))


@pytest.mark.parametrize("data", [b"", b"\n\n", b"\xef\xbb\xbf"])
def test_an_empty_file_is_an_error(write_bytes, data):
    with pytest.raises(TableError, match=r"table\.csv is empty"):
        open_file(write_bytes(data))


def test_a_header_alone_is_a_table_without_rows(write_bytes, split):
    assert split(open_file(write_bytes(b"question,answer\n"))) == ([], [])


@pytest.mark.parametrize(
    ("header", "delimiter"),
    [("a,b", ","), ("a;b;c", ";"), ("a\tb", "\t"), ("a|b", "|"), ("question", ","), ('"x;y;z",b', ",")],
)
def test_the_delimiter_is_the_most_frequent_of_the_header_outside_of_quotes(header, delimiter):
    assert most_frequent_delimiter(header) == delimiter


def test_a_delimiter_can_be_given(write_bytes, split):
    good, _ = split(open_file(write_bytes(b"question:answer,\na:r\n"), delimiter=":"))

    assert good[0].data == {"question": "a", "answer,": "r"}


def test_a_delimiter_of_two_characters_is_an_error(write_bytes):
    with pytest.raises(ConfigurationError, match="single character"):
        open_file(write_bytes(b"a\n"), delimiter="::")


def test_tab_separated_files_go_by_their_ending(write_bytes, split):
    good, _ = split(open_file(write_bytes(b"question\ta,b\nx\ty\n", "table.tsv")))

    assert good[0].data == {"question": "x", "a,b": "y"}


def test_long_passages_fit_into_a_cell_and_the_limit_of_the_process_is_not_touched(write_bytes, split):
    before = csv.field_size_limit()
    good, bad = split(open_file(write_bytes(b"question,answer\nq," + b"x" * 200_000 + b"\n")))

    assert (len(good[0].data["answer"]), bad) == (200_000, [])
    assert csv.field_size_limit() == before


def test_two_tables_that_are_read_at_the_same_time_know_nothing_of_each_other(split):
    is_first_in_a_row, is_second_in_a_row, is_first_done = (threading.Event() for _ in range(3))

    def first():
        yield from ("question,answer\n", 'q,"\n')
        is_first_in_a_row.set()
        is_second_in_a_row.wait(10)
        yield 'r"\n'

    def second():
        yield from ("question,answer\n", 'q,"\n')
        is_second_in_a_row.set()
        is_first_done.wait(10)
        yield "x" * 200_000 + '"\n'

    def read_first():
        split(csv_table(first(), name="first", delimiter=None))
        is_first_done.set()

    reader = threading.Thread(target=read_first)
    reader.start()
    is_first_in_a_row.wait(10)
    good, bad = split(csv_table(second(), name="second", delimiter=None))
    reader.join()

    assert (len(good[0].data["answer"]), bad) == (200_001, [])


@pytest.mark.parametrize(
    ("row", "column"),
    [('q,"xxxxx\n', "answer"), ('"' + "x" * 60 + '",r\n', "question"), ("q,r,s" + "x" * 60 + "\n", "answer")],
    ids=["quote", "line", "more cells than columns"],
)
def test_a_row_has_a_limit_and_the_column_that_goes_on_is_named(monkeypatch, split, row, column):
    monkeypatch.setattr(csv_rows, "MAX_CELL", 50)
    lines = ["question,answer\n", "a,b\n", row, *["c,d\n"] * 15]
    good, bad = split(csv_table(lines, name="t", delimiter=None))

    assert list(map(str, bad)) == [
        f"row 2 (line 3): it has more than 50 characters, the last of them in the column {column!r}"
    ]
    assert good[-1].data == {"question": "c", "answer": "d"}


def test_a_row_that_is_too_long_and_no_csv_is_one_bad_row(monkeypatch, split):
    monkeypatch.setattr(csv_rows, "MAX_CELL", 50)
    _, bad = split(csv_table(["a,b\n", "x\ry" * 30 + "\n", "c,d\n"], name="t", delimiter=None))

    assert [(entry.row, entry.reason) for entry in bad] == [(1, "it has more than 50 characters")]
