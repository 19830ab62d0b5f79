"""Counting outcomes, summing them up, keeping the lowest, and showing how far a run is."""

from __future__ import annotations

import statistics
from types import SimpleNamespace

import pytest

from ragspan.config import Settings
from ragspan.evaluate import Evaluation, scoring
from ragspan.evaluate.evaluation import headline
from ragspan.evaluate.summaries import MetricTally
from ragspan.outcomes import NotApplicable, Score
from ragspan.usage import Usage


def summary_of(*values, reasons=(), label=None, threshold=None):
    tally = MetricTally("m")
    for value in values:
        tally.add(Score(value=value, label=label, threshold=threshold))
    for reason in reasons:
        tally.add(NotApplicable(reason=reason))
    return tally.summary()


def test_the_summary_is_of_the_scores_alone():
    summary = summary_of(0.0, 0.5, 0.75, reasons=["no_response", "timeout", "timeout"], label="pass", threshold=0.8)

    assert (summary.mean, summary.median, summary.minimum, summary.maximum) == (pytest.approx(1.25 / 3), 0.5, 0.0, 0.75)
    assert summary.standard_deviation == pytest.approx(statistics.stdev([0.0, 0.5, 0.75]))
    assert (summary.scored, list(summary.not_scored.items())) == (3, [("timeout", 2), ("no_response", 1)])
    assert (summary.passed, summary.threshold) == (3, 0.8)


def test_the_cost_of_a_resumed_run_says_that_the_earlier_one_is_in_it():
    spent = Usage(requests=8, input_tokens=100, usd=0.5)

    assert headline(Evaluation(metrics=(), rows=2, resumed=2, usage=spent)).endswith(
        "$0.5000, the earlier run's included"
    )
    assert headline(Evaluation(metrics=(), rows=2, usage=spent)).endswith("100 tokens, $0.5000")


# Progress -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("run", "line"),
    [
        ({"done": 50, "resumed": 20}, "50 rows (50%) · 3.0 rows/s\n"),
        ({"done": 50, "outage": "waiting for the judge"}, "50 rows (50%) · waiting for the judge\n"),
        ({"done": 50, "resumed": 50}, "50 rows (50%)\n"),
        ({"done": 0, "begun": 50, "outage": "waiting"}, "0 rows (0%) · waiting\n"),
    ],
)
def test_a_line_tells_rows_and_rate_and_who_is_waited_for(clock, monkeypatch, capsys, run, line):
    monkeypatch.setattr(scoring, "time", SimpleNamespace(monotonic=clock))
    table = SimpleNamespace(share_read=lambda row: row / 100)
    evaluation = Evaluation(metrics=("m",), rows=run["done"], resumed=run.get("resumed", 0))
    others = dict.fromkeys(("budget", "writer", "patience", "stop"))
    shown = scoring.Run(metrics=[], settings=Settings(), table=table, evaluation=evaluation, progress=True, **others)
    shown.begun, shown.outage = run.get("begun", run["done"]), run.get("outage")
    shown.began = shown.shown = clock.now - 10
    shown.show_progress()

    assert capsys.readouterr().err == line
