"""Labelled records from a file."""

from __future__ import annotations

import json

import pytest

from ragspan.config import Settings
from ragspan.defaults import engine_from
from ragspan.exceptions import ConfigurationError
from ragspan.labelled import labelled_records

ROW = {"question": "Why?", "contexts": ["Because."], "response": "Because.", "label": "yes"}


@pytest.fixture
def a_file(tmp_path):
    def write(*lines):
        path = tmp_path / "anchors.jsonl"
        path.write_text("".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines))
        return str(path)

    return write


def test_each_row_is_a_record_with_its_label(a_file):
    (first, is_good), (second, is_bad) = labelled_records(a_file(ROW, "", ROW | {"label": 0, "id": "two"}))

    assert (first.question, [one.text for one in first.contexts], first.response) == ("Why?", ["Because."], "Because.")
    assert (is_good, is_bad, second.record_id) == (True, False, "two")


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ("{", "row 2 .*JSON"),
        ([], "row 2 is wrong: Expected `object`"),
        (ROW | {"question": None}, r"row 2 is wrong: Expected `str`, got `null` - at `\$.question`"),
        (ROW | {"contexts": "Because."}, r"row 2 is wrong: Expected `array`, got `str` - at `\$.contexts`"),
        (ROW | {"label": "perhaps"}, "row 2 has the label 'perhaps', but should have one of 1, correct"),
        ({**ROW, "label": None}, "row 2 has the label 'None'"),
    ],
)
def test_a_wrong_row_is_named(a_file, row, why):
    with pytest.raises(ConfigurationError, match=why):
        labelled_records(a_file(ROW, row))


def test_a_file_that_cannot_be_read_or_is_empty_is_an_error(a_file, tmp_path):
    with pytest.raises(ConfigurationError, match=r"none.jsonl' cannot be read"):
        labelled_records(str(tmp_path / "none.jsonl"))
    with pytest.raises(ConfigurationError, match="there is no row"):
        labelled_records(a_file(""))


def test_the_engine_of_the_environment_reads_them_where_it_is_made(a_file):
    path = a_file(ROW, {**ROW, "label": "?"})
    with pytest.raises(ConfigurationError, match="row 2 has the label"):
        engine_from(Settings(anchors=path, metrics=("completeness",)))
    with engine_from(Settings(anchors=path, enabled=False)):
        pass
