"""Results as data frames and as text."""

from __future__ import annotations

import pandas as pd
import polars as pl
import pytest

from ragspan.evaluate import evaluate
from ragspan.records import RagRecord
from ragspan.testing import FakeJudge

COLUMNS = ["faithfulness", "faithfulness_label", "faithfulness_reason"]


@pytest.fixture
def frame(rows):
    return pd.DataFrame(rows, index=[10, 20, 30, 40])


def test_the_scores_are_beside_the_columns_of_the_table_and_under_its_index(frame, judge):
    wide = evaluate(frame, "faithfulness", judge=judge).to_pandas()

    assert list(wide.columns) == ["id", "question", "contexts", "answer", *COLUMNS]
    assert list(wide.index) == [10, 20, 30, 40]
    assert wide["faithfulness"].tolist() == [1.0, pd.NA, pd.NA, 1.0]
    assert wide["faithfulness_label"].tolist() == ["pass", pd.NA, pd.NA, "pass"]
    assert wide["faithfulness_reason"][20].startswith("no_contexts")
    assert wide["faithfulness"].dtype == "Float64"
    assert list(frame.columns) == ["id", "question", "contexts", "answer"]


def test_a_column_with_the_name_of_a_metric_stays(frame, judge):
    wide = evaluate(frame.assign(faithfulness="yes"), "faithfulness", judge=judge).to_pandas()

    assert wide["faithfulness"].tolist() == ["yes"] * 4
    assert wide["ragspan_faithfulness"].tolist() == [1.0, pd.NA, pd.NA, 1.0]


@pytest.mark.parametrize("form", ["list", "file", "pandas", "polars", "records", "bad rows", "limit"])
def test_any_table_that_can_be_read_again_has_its_columns(rows, frame, judge, write_jsonl, form):
    records = [
        RagRecord(question=row["question"], contexts=row["contexts"], response=row["answer"], record_id=row["id"])
        for row in rows
    ]
    data = {"file": write_jsonl(rows), "pandas": frame, "polars": pl.DataFrame(rows), "records": records}.get(
        form, rows
    )
    if form == "bad rows":
        data = [rows[0], "no row", *rows[2:]]
    evaluation = evaluate(data, "faithfulness", judge=judge, limit=3 if form == "limit" else None)

    for wide in (evaluation.to_pandas(), evaluation.to_polars().to_pandas()):
        assert wide["question"].tolist()[0] == "q1"
        assert wide["faithfulness"].tolist()[0] == 1.0
        assert len(wide) == (3 if form == "limit" else 4)
        assert pd.isna(wide["faithfulness"].tolist()[1])


def test_rows_that_can_be_read_once_have_their_numbers_and_ids(rows, judge):
    wide = evaluate(iter(rows), "faithfulness", judge=judge).to_pandas()

    assert list(wide.columns) == ["row", "record_id", *COLUMNS]
    assert wide["record_id"].tolist() == ["a", "b", "c", "d"]


def test_an_evaluation_prints_as_a_table(rows, judge):
    rows[1]["answer"] = ["no text"]
    text = str(evaluate(rows, ["faithfulness", "completeness"], judge=judge))
    lines = [line.split() for line in text.splitlines()]

    assert ["faithfulness", "1.000", "1.000", "1.000", "1.000", "0.000", "2", "100%"] in lines
    assert "2 rows evaluated by fake, 2 skipped (unreadable 1, no_response 1)" in text
    assert len(text) < 800


def test_rows_that_are_nobodys_fault_are_counted(rows):
    unsure = FakeJudge(supported=[None])
    evaluation = evaluate(rows, "faithfulness", judge=unsure)

    assert evaluation.special == {"cannot_tell": 2, "no_contexts": 1}
    assert "2 unsure, 1 without contexts" in str(evaluation)
