"""Evaluations made from outcomes, and what their pages hold."""

from __future__ import annotations

import json
import re
from dataclasses import astuple
from pathlib import Path

import pytest
from whole_records import WholeRecords, steady

from ragspan import RagRecord, Score
from ragspan.evaluate.evaluation import Evaluation
from ragspan.evaluate.report import show_failing, signs_of, write_report
from ragspan.evaluate.rows import EvaluatedRow

WHOLE = WholeRecords(Path(__file__).with_name("whole_pages.json"))


@pytest.fixture
def answered():
    """Makes a row of a table with its outcomes; a number stands for a score with a threshold of one half."""

    def make(row, outcomes, *, record_id=None, **texts):
        whole = {
            metric: Score(value=outcome, threshold=0.5, judge="overlap") if isinstance(outcome, float) else outcome
            for metric, outcome in outcomes.items()
        }
        usual = {"question": "How tall is it?", "contexts": ["It is 300 m tall."], "response": "300 m."}
        record = RagRecord(**{**usual, **texts}, record_id=record_id or f"row-{row}", started_ns=1)
        return EvaluatedRow(row=row, record=record, outcomes=whole)

    return make


@pytest.fixture
def evaluation_of(request):
    """What evaluating a table with these rows gives; its signs of risk, or what its page shows of answers, are in a file, too."""
    made = []

    def make(rows, *, by=(), **more):
        rows = list(rows)
        metrics = tuple(dict.fromkeys(metric for row in rows for metric in row.outcomes))
        evaluation = Evaluation(metrics=metrics, by=by, all_rows=lambda: iter(rows), **more)
        for row in rows:
            evaluation.add(row)
        made.append(evaluation)
        return evaluation

    yield make
    if request.path.stem == "test_answers":
        kind, told = "answers", [show_failing(one) for one in made]
    else:
        kind, told = "signs", [[astuple(sign) for sign in signs_of(one)] for one in made]
    known, found = WHOLE.told(f"{request.path.stem} {request.node.name} {kind}", steady(json.loads(json.dumps(told))))
    assert found == known


@pytest.fixture
def page_of(tmp_path, request):
    """The source of the page of an evaluation, and the data in it, which is in a file, too."""
    pages = []

    def make(evaluation, **more):
        write_report(evaluation, tmp_path / "report.html", **more)
        source = (tmp_path / "report.html").read_text(encoding="utf-8")
        (data,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', source, re.DOTALL)
        pages.append(steady(json.loads(data)))
        return source, json.loads(data)

    yield make
    known, found = WHOLE.told(f"{request.path.stem} {request.node.name}", pages)
    assert found == known
