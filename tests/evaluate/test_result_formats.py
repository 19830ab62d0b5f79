"""Result files."""

from __future__ import annotations

import csv
import json
import re

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragspan.evaluate.result_file import ResultFile, with_formula, without_formula, write_results
from ragspan.evaluate.results import RESULT_COLUMNS, ResultRow
from ragspan.exceptions import ConfigurationError, TableError
from ragspan.outcomes import MetricFailure, NotApplicable, Score
from ragspan.usage import Usage

ENDINGS = ("csv", "jsonl", "parquet")
USAGE = Usage(requests=2, input_tokens=3, output_tokens=4, usd=0.1)
OUTCOMES = [
    ("m", Score(value=1 / 3, threshold=0.5, explanation="=cmd|' /C calc'!A0", judge="j")),
    ("n", NotApplicable(reason="timeout", detail='\'=2, "x"\nÄ')),
    ("m", Score(value=1.0, threshold=0.5, usage=USAGE)),
    ("n", MetricFailure(error_type="timeout", message="m")),
]
RESULTS = [
    ResultRow.from_outcome(outcome, row=place // 2 + 1, record_id="ab"[place // 2], metric=metric)
    for place, (metric, outcome) in enumerate(OUTCOMES)
]


@pytest.fixture(params=ENDINGS)
def write(request, tmp_path):
    def written(results):
        path = tmp_path / f"results.{request.param}"
        write_results(path, request.param, results)
        return ResultFile(path)

    return written


def test_results_are_read_as_they_were_written(write):
    file = write(RESULTS)

    assert list(file.results()) == RESULTS
    assert file.metrics == ("m", "n")


def test_half_of_a_surrogate_pair_and_nul_are_written_as_question_marks(write):
    (result,) = write([ResultRow(row=1, record_id="a", metric="m", reason="x\ud800é\0")]).results()

    assert result.reason == "x?é?"


def test_files_without_results_have_their_columns(write):
    file = write([])

    assert list(file.results()) == []
    if file.path.suffix == ".csv":
        assert file.path.read_bytes() == ",".join(RESULT_COLUMNS).encode() + b"\r\n"


def test_only_csv_files_guard_texts(tmp_path):
    for ending in ENDINGS:
        write_results(tmp_path / f"r.{ending}", ending, RESULTS)
    first = json.loads((tmp_path / "r.jsonl").read_text(encoding="utf-8").splitlines()[0])

    assert first["explanation"] == pd.read_parquet(tmp_path / "r.parquet")["explanation"][0] == "=cmd|' /C calc'!A0"
    assert pd.read_csv(tmp_path / "r.csv")["explanation"][0].startswith("'=cmd|'")


def test_an_ending_that_stands_for_no_format_is_an_error(tmp_path):
    with pytest.raises(ConfigurationError, match=r"none of which 'r\.xlsx' ends with"):
        ResultFile(tmp_path / "r.xlsx")


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("r.csv", b"question,answer\nq,a\n"),
        ("r.jsonl", b'{"question": "a"}\n'),
        ("r.jsonl", b"text\n"),
        ("r.csv", ",".join(RESULT_COLUMNS).encode() + b"\nx,a,m,,,,,,,,,,,\n"),
        ("r.parquet", b"text"),
    ],
)
def test_what_is_no_file_of_results_is_an_error(tmp_path, name, data):
    (tmp_path / name).write_bytes(data)

    with pytest.raises(TableError, match=r"is not a file of results|cannot be read as Parquet"):
        list(ResultFile(tmp_path / name).results())
    with pytest.raises(TableError, match="No such file"):
        list(ResultFile(tmp_path / "absent.csv").results())


# Formulas -------------------------------------------------------------------------------------------------------------

FORMULAS = ["=1+1", "+1", "-1", "@SUM(A1)", "\uff1d1", "\uff0b1", "\uff0d1", "\uff201", " =1", "\xa0=1", '"=1"', "'=1"]


@pytest.mark.parametrize("text", [*FORMULAS, "\tx", "\rx", "\nx"])
def test_no_cell_of_a_csv_file_is_a_formula(tmp_path, text):
    results = [ResultRow(row=1, record_id=text, metric="m", reason=text, detail=text, judge=text)]
    write_results(tmp_path / "r.csv", "csv", results)
    with (tmp_path / "r.csv").open(encoding="utf-8", newline="") as file:
        (row,) = csv.DictReader(file)

    assert {row[name] for name in ("record_id", "reason", "detail", "judge")} == {"'" + text}
    assert list(ResultFile(tmp_path / "r.csv").results()) == results


@pytest.mark.parametrize("delimiter", [",", ";", "|", "\t", "\n", "\r\n"])
def test_no_part_of_a_text_is_a_formula_whatever_delimits_cells(tmp_path, delimiter):
    text = delimiter.join(["x", *FORMULAS])
    write_results(tmp_path / "r.csv", "csv", [ResultRow(row=1, record_id="a", metric="m", explanation=text)])
    file = (tmp_path / "r.csv").read_bytes().decode()
    cells = [cell.strip(' \xa0"') for cell in re.split(r"[,;|\t\r\n]", file)]

    assert [cell for cell in cells if cell[:1] in set("=+-@\uff1d\uff0b\uff0d\uff20") - {""}] == []
    assert next(ResultFile(tmp_path / "r.csv").results()).explanation == text


@given(st.text() | st.text(alphabet="=+-@\uff1d,;|\t\r\n '\"\u3000x"))
def test_a_guarded_text_can_be_told_from_any_other(text):
    assert with_formula(without_formula(text)) == text


def test_a_text_without_a_formula_is_left_alone():
    text = "It's 3 - 2 = 1; see a-b, c+d | e@f.\nDone, then."

    assert without_formula(text) == text
