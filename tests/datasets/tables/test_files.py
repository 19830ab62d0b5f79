"""Files by their endings, and standard input."""

from __future__ import annotations

import gzip
import subprocess
import sys

import pytest

from ragspan.datasets.tables import files, open_file
from ragspan.exceptions import ConfigurationError, TableError


def test_a_file_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(TableError, match="No such file"):
        open_file(tmp_path / "absent.csv")


def test_an_ending_that_says_nothing_asks_for_the_format(write_bytes, split):
    path = write_bytes(b"question\na\n", "table.txt")

    with pytest.raises(ConfigurationError, match="is not known from its ending: name it with --format csv"):
        open_file(path)
    assert len(split(open_file(path, file_format="csv"))[0]) == 1


def test_a_format_that_does_not_exist_is_an_error(write_bytes):
    with pytest.raises(ConfigurationError, match="'xml', but should be one of"):
        open_file(write_bytes(b""), file_format="xml")


def test_compressed_files_are_read_as_what_they_hold(write_bytes, split):
    good, _ = split(open_file(write_bytes(gzip.compress(b"question\na\n"), "table.csv.gz")))

    assert good[0].data == {"question": "a"}


@pytest.mark.parametrize("data", [b"question\na\n", gzip.compress(b"question\n" * 1000)[:-10]], ids=["none", "cut"])
def test_damaged_compression_is_an_error(write_bytes, split, data):
    with pytest.raises(TableError, match="cannot be decompressed"):
        split(open_file(write_bytes(data, "table.csv.gz")))


def test_the_share_that_was_read_grows_to_the_whole(write_bytes):
    table = open_file(write_bytes(b"question\n" + b"abcdefgh\n" * 50_000))
    before = table.share_read()
    for _ in table.entries:
        pass

    assert 0 < before < 1
    assert table.share_read() == 1
    table.close()


def test_files_of_the_same_size_are_told_apart_by_their_ends(write_bytes):
    one, other = (
        open_file(write_bytes(data, name)) for data, name in ((b"question\na\n", "1.csv"), (b"question\nb\n", "2.csv"))
    )

    assert one.identity["size"] == other.identity["size"]
    assert one.identity != other.identity
    one.close()
    other.close()


def test_standard_input_is_read_by_the_name_of_a_dash():
    program = (
        "from ragspan.datasets.tables import open_file\n"
        "table = open_file('-', file_format='jsonl')\n"
        "print([entry.data for entry in table.entries]); table.close()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], input='{"question": "a"}\n', capture_output=True, text=True, check=True
    )

    assert done.stdout == "[{'question': 'a'}]\n"


def test_parquet_that_expands_without_end_is_an_error(monkeypatch, write_bytes):
    monkeypatch.setattr(files, "_SMALL", 1 << 20)
    data = gzip.compress(bytes(8 << 20))

    with pytest.raises(TableError, match="expands to more than 1,"):
        open_file(write_bytes(data, "table.parquet.gz"))


@pytest.mark.parametrize("data", [b"PAR1", gzip.compress(b"PAR1" * 1000)[:-10]], ids=["none", "cut"])
def test_damaged_compression_of_parquet_is_an_error(write_bytes, data):
    with pytest.raises(TableError, match="cannot be decompressed"):
        open_file(write_bytes(data, "table.parquet.gz"))
