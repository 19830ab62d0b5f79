"""Result files."""

from __future__ import annotations

import csv
import json
import re
import time

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragspan.datasets.result_file import ResultFile, read_results, with_formula, without_formula, write_results
from ragspan.datasets.results import RESULT_COLUMNS, ResultRow
from ragspan.exceptions import ConfigurationError, TableError
from ragspan.outcomes import MetricFailure, NotApplicable, Score

RESULTS = [
    ResultRow(row=1, record_id="a", metric="m", score=1 / 3, label="fail", explanation="=cmd|' /C calc'!A0", judge="j"),
    ResultRow(row=1, record_id="a", metric="n", reason="no_claims", detail='\'=2, "x"\nÄ'),
    ResultRow(
        row=2, record_id="b", metric="m", score=1.0, label="pass", requests=2, input_tokens=3, output_tokens=4, usd=0.1
    ),
    ResultRow(row=2, record_id="b", metric="n", reason="timeout"),
]


@pytest.fixture(params=["csv", "jsonl", "parquet"])
def written(request, tmp_path):
    path = tmp_path / f"results.{request.param}"
    write_results(path, request.param, RESULTS)
    return path


def test_results_are_read_as_they_were_written(written):
    assert list(ResultFile(written).results()) == RESULTS


def test_a_result_file_has_the_summary_of_its_scores(written):
    file = ResultFile(written)

    assert (file.metrics, file.rows) == (("m", "n"), 2)
    assert list(file.values("m")) == [1 / 3, 1.0]
    assert file.summary["m"].mean == pytest.approx(2 / 3)
    assert (file.summary["m"].passed, file.summary["n"].not_scored) == (1, {"no_claims": 1, "timeout": 1})


def test_no_cell_of_a_csv_file_is_a_formula(tmp_path):
    texts = ["=1+1", "+1", "-1", "@SUM(A1)", "\tx", "\rx", "\nx", "\uff1d1", "'=1"]
    results = [ResultRow(row=1, record_id=text, metric="m", reason=text, detail=text, judge=text) for text in texts]
    write_results(tmp_path / "r.csv", "csv", results)
    with (tmp_path / "r.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))

    assert [row["record_id"] for row in rows] == ["'" + text for text in texts]
    assert all(row[name] == row["record_id"] for row in rows for name in ("reason", "detail", "judge"))
    assert list(read_results(tmp_path / "r.csv", "csv")) == results


def test_the_other_formats_hold_texts_as_they_are(tmp_path):
    write_results(tmp_path / "r.jsonl", "jsonl", RESULTS)
    write_results(tmp_path / "r.parquet", "parquet", RESULTS)
    first = json.loads((tmp_path / "r.jsonl").read_text(encoding="utf-8").splitlines()[0])

    assert first["explanation"] == pd.read_parquet(tmp_path / "r.parquet")["explanation"][0] == "=cmd|' /C calc'!A0"


@given(st.text())
def test_a_guarded_text_can_be_told_from_any_other(text):
    assert with_formula(without_formula(text)) == text


def test_half_of_a_surrogate_pair_is_written_as_a_question_mark(tmp_path):
    for ending in ("csv", "jsonl", "parquet"):
        path = tmp_path / f"r.{ending}"
        write_results(path, ending, [ResultRow(row=1, record_id="a", metric="m", reason="x\ud800é")])

        assert next(ResultFile(path).results()).reason == "x?é"


def test_files_without_results_have_their_columns(tmp_path):
    for ending in ("csv", "jsonl", "parquet"):
        path = tmp_path / f"r.{ending}"
        write_results(path, ending, [])

        assert list(ResultFile(path).results()) == []
    assert (tmp_path / "r.csv").read_bytes() == ",".join(RESULT_COLUMNS).encode() + b"\r\n"


def test_an_ending_that_stands_for_no_format_is_an_error(tmp_path):
    with pytest.raises(ConfigurationError, match=r"'r\.xlsx' does not end with"):
        ResultFile(tmp_path / "r.xlsx")


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("r.csv", b"question,answer\n"),
        ("r.jsonl", b'{"question": "a"}\n'),
        ("r.jsonl", b"text\n"),
        ("r.csv", ",".join(RESULT_COLUMNS).encode() + b"\nx,a,m,,,,,,,,,,,\n"),
        ("r.parquet", b"text"),
    ],
)
def test_what_is_no_file_of_results_is_an_error(tmp_path, name, data):
    (tmp_path / name).write_bytes(data)

    with pytest.raises(TableError, match="is no file of results"):
        list(ResultFile(tmp_path / name).results())


def test_a_result_file_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(TableError, match="cannot be read"):
        list(ResultFile(tmp_path / "r.csv").results())


FORMULAS = ["=1+1", "+1", "-1", "@SUM(A1)", "\uff1d1", "\uff0b1", "\uff0d1", "\uff201", " =1", "\xa0=1", '"=1"', "'=1"]


@pytest.mark.parametrize("delimiter", [",", ";", "|", "\t", "\n", "\r\n"])
@pytest.mark.parametrize("formula", FORMULAS)
def test_no_part_of_a_text_is_a_formula_whatever_delimits_cells(tmp_path, formula, delimiter):
    text = f"x{delimiter}{formula}"
    results = [ResultRow(row=1, record_id="a", metric="m", explanation=text)]
    write_results(tmp_path / "r.csv", "csv", results)
    file = (tmp_path / "r.csv").read_bytes().decode()
    cells = [cell.strip(' \xa0"') for cell in re.split(r"[,;|\t\r\n]", file)]

    assert [cell for cell in cells if cell[:1] in set("=+-@\uff1d\uff0b\uff0d\uff20") - {""}] == []
    assert list(read_results(tmp_path / "r.csv", "csv")) == results


@given(st.text(alphabet="=+-@\uff1d,;|\t\r\n '\"\u3000x"))
def test_a_guarded_text_of_signs_and_delimiters_can_be_told_from_any_other(text):
    assert with_formula(without_formula(text)) == text


def test_a_text_without_a_formula_is_left_alone():
    text = "It's 3 - 2 = 1; see a-b, c+d | e@f.\nDone, then."

    assert without_formula(text) == text


@pytest.mark.parametrize("text", ["\n" * 300_000, " " * 300_000 + "x", "; " * 150_000, "'" * 300_000])
def test_a_long_text_of_blanks_and_delimiters_takes_no_time(text):
    before = time.process_time()
    assert with_formula(without_formula(text)) == text

    assert time.process_time() - before < 5


def test_a_file_keeps_apart_what_does_not_apply_and_what_failed(tmp_path):
    outcomes = [Score(value=0.5), NotApplicable(reason="timeout"), MetricFailure(error_type="timeout", message="")]
    results = [
        ResultRow.from_outcome(outcome, row=row, record_id="a", metric="m") for row, outcome in enumerate(outcomes, 1)
    ]
    for ending in ("csv", "jsonl", "parquet"):
        write_results(tmp_path / f"r.{ending}", ending, results)
        summary = ResultFile(tmp_path / f"r.{ending}").summary["m"]

        assert (summary.scored, summary.not_scored, summary.failed) == (1, {"timeout": 2}, 1)
