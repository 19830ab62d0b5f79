"""Counting outcomes, summing them up, keeping the lowest, and showing how far a run is."""

from __future__ import annotations

import asyncio
import io
import statistics

import pytest

from ragspan.evaluate.progress import RunProgress, progress_on_stderr
from ragspan.evaluate.rows import BadRow, EvaluatedRow
from ragspan.evaluate.running import run
from ragspan.evaluate.scoring import plan_from
from ragspan.evaluate.summaries import MetricTally
from ragspan.outcomes import NotApplicable, Score
from ragspan.records import RagRecord
from ragspan.usage import Usage

RECORD = RagRecord(question="q", contexts=None, response="r")


def summary_of(*values, reasons=(), label=None, threshold=None):
    tally = MetricTally()
    for value in values:
        tally.add(Score(value=value, label=label, threshold=threshold))
    for reason in reasons:
        tally.add(NotApplicable(reason=reason))
    return tally.summary("m")


def test_the_summary_is_of_the_scores_alone():
    summary = summary_of(0.0, 0.5, 0.75, reasons=["no_response", "timeout", "timeout"], label="pass", threshold=0.8)

    assert (summary.mean, summary.median, summary.minimum, summary.maximum) == (pytest.approx(1.25 / 3), 0.5, 0.0, 0.75)
    assert summary.standard_deviation == pytest.approx(statistics.stdev([0.0, 0.5, 0.75]))
    assert (summary.scored, list(summary.not_scored.items())) == (3, [("timeout", 2), ("no_response", 1)])
    assert (summary.passed, summary.threshold) == (3, 0.8)


# Progress -------------------------------------------------------------------------------------------------------------


class SlowMetric:
    name = "slow"

    async def score(self, _):
        await asyncio.sleep(0.01)
        return Score(value=1.0)


@pytest.mark.parametrize("limit", [None, 1000, 10])
def test_the_share_is_of_the_rows_that_are_done_and_not_of_those_that_are_read(write_jsonl, limit):
    table = write_jsonl([{"question": "q", "contexts": ["c"], "answer": "a"}] * 12)
    shares = []
    plan = plan_from(
        {"data": table, "metrics": [SlowMetric()], "limit": limit},
        on_row=lambda progress: shares.append(progress.share_done),
    )
    rows = run(plan).rows

    assert len(shares) == rows
    assert shares[-1] == 1
    assert min(shares) < 0.5, "one row of ten is not half of them"


def do(progress, rows):
    for _ in range(rows):
        outcome = Score(value=0.5, usage=Usage(requests=1, usd=0.01))
        progress.add(EvaluatedRow(row=progress.done + 1, record=RECORD, outcomes={"m": outcome}))


def test_a_line_tells_rows_rate_means_bad_rows_cost_and_the_time_left(clock):
    file = io.StringIO()
    progress = RunProgress(("m",))
    progress.share_done = 0.5
    with progress_on_stderr(file=file, clock=clock) as display:
        do(progress, 49)
        progress.add(BadRow(row=50, reason="bad"))
        clock.advance(10)
        display(progress)

    assert file.getvalue() == "50 rows (50%) · 5.0 rows/s · 10 s left · m 0.500 · 1 bad · $0.4900\n"
