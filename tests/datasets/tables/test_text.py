"""Lines of text, and the place where they are none."""

from __future__ import annotations

import io

import pytest

from ragspan.datasets.tables import files
from ragspan.datasets.tables.files import TextLines
from ragspan.exceptions import TableError


def lines_of(data, encoding="utf-8"):
    return list(TextLines(io.BytesIO(data), encoding=encoding, name="t.csv"))


def test_lines_keep_their_ends_and_the_last_may_have_none():
    assert lines_of(b"a\r\nb\n\nc") == ["a\r\n", "b\n", "\n", "c"]


def test_separators_that_are_no_line_ends_do_not_end_a_line():
    assert lines_of("a\u2028b\x85c\n".encode()) == ["a\u2028b\x85c\n"]


@pytest.mark.parametrize("chunk", [1, 2, 3, 7])
def test_the_size_of_the_pieces_that_are_read_changes_nothing(monkeypatch, chunk):
    monkeypatch.setattr(files, "_CHUNK", chunk)

    assert lines_of("\ufeffäö\nü€\n".encode()) == ["äö\n", "ü€\n"]


@pytest.mark.parametrize("chunk", [1, 4, 1 << 16])
def test_a_wrong_encoding_is_told_by_the_byte_and_with_one_to_try(monkeypatch, chunk):
    monkeypatch.setattr(files, "_CHUNK", chunk)

    with pytest.raises(
        TableError, match=r"t\.csv: byte 6 \(0xfc, about line 2\) is no utf-8 text: try --encoding cp1252"
    ):
        lines_of(b"abc\nd\xfce\n")


def test_a_wrong_byte_behind_a_byte_order_mark_is_counted_from_the_beginning_of_the_file():
    with pytest.raises(TableError, match=r"byte 5 \(0xff"):
        lines_of(b"\xef\xbb\xbfa\xff")


def test_text_in_utf_16_is_recognised_by_its_mark():
    with pytest.raises(TableError, match="try --encoding utf-16"):
        lines_of("question".encode("utf-16"))

    assert lines_of("a\nb".encode("utf-16"), "utf-16") == ["a\n", "b"]


def test_text_that_breaks_off_in_a_character_is_an_error():
    with pytest.raises(TableError, match="byte 2"):
        lines_of("aä".encode()[:2])


def test_an_encoding_that_does_not_exist_is_an_error():
    with pytest.raises(TableError, match="no text encoding 'utf-88'"):
        lines_of(b"", "utf-88")


def test_a_line_without_end_is_not_taken_into_memory(monkeypatch):
    monkeypatch.setattr(files, "MAX_LINE", 100_000)

    with pytest.raises(TableError, match="line 2 has more than 100,000 characters"):
        lines_of(b"a\n" + b"x" * 300_000)


def test_the_first_character_stays_where_it_is():
    lines = TextLines(io.BytesIO(b" \n [1]"), encoding="utf-8", name="t")

    assert lines.first_character() == "["
    assert list(lines) == [" \n", " [1]"]


def test_blanks_at_the_beginning_are_not_all_held_to_see_what_follows():
    stream = io.BytesIO(b" \n" * 10_000_000 + b"[")
    lines = TextLines(stream, encoding="utf-8", name="t")

    assert lines.first_character() == ""
    assert stream.tell() < 10_000_000
