"""JSON, one object a line or an array of them."""

from __future__ import annotations

import itertools
import json

import pytest

from ragspan.datasets.tables import json_rows, open_file
from ragspan.exceptions import TableError


def test_a_bad_line_is_a_bad_row_and_blank_lines_are_nothing(write_bytes, split):
    good, bad = split(open_file(write_bytes(b'{"question": "a"}\n\n{"question": \n[1]\n{"question": "b"}', "t.jsonl")))

    assert [(entry.row, entry.line) for entry in good] == [(1, 1), (4, 5)]
    assert [(entry.row, entry.line) for entry in bad] == [(2, 3), (3, 4)]
    assert "no JSON" in bad[0].reason
    assert bad[1].reason == "it is a list, but should be an object"


def test_no_text_of_a_bad_line_is_quoted(write_bytes, split):
    _, bad = split(open_file(write_bytes(b'{"answer": secret}\n', "t.jsonl")))

    assert "secret" not in bad[0].reason


@pytest.mark.parametrize("line", [b"[" * 100_000, b'{"a": ' + b"9" * 5000 + b"}"])
def test_json_that_python_cannot_hold_is_a_bad_row(write_bytes, split, line):
    good, bad = split(open_file(write_bytes(line + b'\n{"question": "b"}\n', "t.jsonl")))

    assert len(good) + len(bad) == 2
    assert good[-1].data == {"question": "b"}


def test_the_columns_are_those_of_the_first_rows_together(write_bytes):
    table = open_file(write_bytes(b'{"question": "a"}\n{"answer": "b", "question": "c"}\n', "t.jsonl"))

    assert list(table.columns) == ["question", "answer"]
    table.close()


def test_a_json_file_may_be_an_array(write_bytes, split):
    rows = [{"question": "x" * 70_000, "answer": str(number)} for number in range(5)]
    good, bad = split(open_file(write_bytes(json.dumps([*rows, 12, "text"], indent=1).encode(), "t.json")))

    assert [entry.data for entry in good] == rows
    assert [(entry.row, entry.reason) for entry in bad] == [
        (6, "it is a int, but should be an object"),
        (7, "it is a str, but should be an object"),
    ]


def test_a_json_file_may_be_lines_as_well(write_bytes, split):
    good, _ = split(open_file(write_bytes(b'\n {"question": "a"}\n{"question": "b"}\n', "t.json")))

    assert [entry.data["question"] for entry in good] == ["a", "b"]


@pytest.mark.parametrize("data", [b'[{"a": 1} {"a": 2}]', b'[{"a": 1}, {"a": ', b'[{"a": 1}', b'[{"a": 1},, {"a": 2}]'])
def test_an_array_that_breaks_off_is_an_error_that_names_the_row(write_bytes, data):
    with pytest.raises(TableError, match=r"t\.json is no JSON (in row 2|after row 1)"):
        list(open_file(write_bytes(data, "t.json")).entries)


def test_an_empty_array_is_a_table_without_rows(write_bytes, split):
    assert split(open_file(write_bytes(b" [ ] ", "t.json"))) == ([], [])


@pytest.mark.parametrize("data", [b"", b" \n\n"])
def test_an_empty_file_is_an_error(write_bytes, data):
    with pytest.raises(TableError, match="is empty"):
        open_file(write_bytes(data, "t.jsonl"))


@pytest.mark.parametrize("name", ["t.jsonl", "t.json"])
def test_a_number_of_thousands_of_digits_is_text(write_bytes, split, name):
    row = b'{"answer": -' + b"9" * 5000 + b"}"
    data = row + b'\n{"answer": 12}' if name == "t.jsonl" else b"[" + row + b', {"answer": 12}]'
    good, bad = split(open_file(write_bytes(data, name)))

    assert ([entry.data["answer"] for entry in good], bad) == (["-" + "9" * 5000, 12], [])


def test_an_element_of_an_array_that_never_ends_is_not_taken_into_memory(monkeypatch):
    monkeypatch.setattr(json_rows, "MAX_LINE", 100_000)
    pieces = itertools.chain(['[{"a": 1}, {"a": "'], itertools.repeat("x" * 10_000))

    with pytest.raises(TableError, match="in row 2, or has more than 100,000 characters there"):
        json_rows.json_table(pieces, name="t.json")


def test_lists_without_end_are_not_taken_into_memory(monkeypatch, write_bytes, split):
    monkeypatch.setattr(json_rows, "_MOST_CONTAINERS", 1000)
    row = b'{"contexts": [' + b"[]," * 1000 + b'[]], "question": "a"}'
    good, bad = split(open_file(write_bytes(row + b'\n{"question": "b"}\n', "t.jsonl")))

    assert ([entry.row for entry in good], [entry.row for entry in bad]) == ([2], [1])
    with pytest.raises(TableError, match=r"in row 1 that can be read: it is JSON .* more than"):
        open_file(write_bytes(b"[" + row + b"]", "t.json"))
