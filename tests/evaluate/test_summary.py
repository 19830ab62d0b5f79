"""What a run took, and how far it is."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from ragspan.config import Settings
from ragspan.evaluate import Evaluation, scoring
from ragspan.evaluate.evaluation import headline
from ragspan.usage import Usage


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
        (
            {"done": 50, "status": SimpleNamespace(update=lambda words: sys.stderr.write(f"{words}.\n"))},
            "50 rows (50%) · 5.0 rows/s.\n",
        ),
        ({"done": 0, "begun": 50, "outage": "waiting"}, "0 rows (0%) · waiting\n"),
    ],
)
def test_a_line_tells_rows_and_rate_and_who_is_waited_for(clock, monkeypatch, capsys, run, line):
    monkeypatch.setattr(scoring, "time", SimpleNamespace(monotonic=clock))
    table = SimpleNamespace(share_read=lambda row: row / 100)
    evaluation = Evaluation(metrics=("m",), rows=run["done"], resumed=run.get("resumed", 0))
    others = dict.fromkeys(("budget", "writer", "patience", "stop"))
    shown = scoring.Run(metrics=[], settings=Settings(), table=table, evaluation=evaluation, progress=True, **others)
    shown.status = run.get("status")
    shown.begun, shown.outage = run.get("begun", run["done"]), run.get("outage")
    shown.began = shown.shown = clock.now - 10
    shown.show_progress()

    assert capsys.readouterr().err == line
