"""Counting outcomes, summing them up, keeping the lowest, and showing how far a run is."""

from __future__ import annotations

import io
import random
import statistics

import pytest

from ragspan.evaluate.evaluated import WORST_KEPT
from ragspan.evaluate.progress import RunProgress, progress_on_stderr
from ragspan.evaluate.rows import BadRow, EvaluatedRow
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


# The lowest -----------------------------------------------------------------------------------------------------------


def row(number, **values):
    outcomes = {
        metric: NotApplicable(reason="no_response") if value is None else Score(value=value)
        for metric, value in values.items()
    }
    return EvaluatedRow(row=number, record=RECORD, outcomes=outcomes)


def evaluated(rows, *metrics):
    progress = RunProgress(metrics)
    for one in rows:
        progress.add(one)
    return progress.evaluation()


def numbers(rows):
    return [one.row for one in rows]


def test_the_lowest_are_kept_whatever_the_order_and_of_equals_the_earlier_rows():
    values = [number / 1000 for number in range(500)]
    random.Random(3).shuffle(values)
    kept = evaluated([row(number, m=value) for number, value in enumerate(values)], "m").worst
    equal = evaluated([row(number, m=0.5) for number in range(WORST_KEPT + 5)], "m").worst

    assert sorted(one.outcomes["m"].value for one in kept) == [place / 1000 for place in range(WORST_KEPT)]
    assert numbers(kept) == sorted(numbers(kept))
    assert numbers(equal) == list(range(WORST_KEPT))


# Progress -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def progress():
    return RunProgress(("m",), share_done=lambda done: done / 100)


def do(progress, rows):
    for _ in range(rows):
        outcome = Score(value=0.5, usage=Usage(requests=1, usd=0.01))
        progress.add(EvaluatedRow(row=progress.done + 1, record=RECORD, outcomes={"m": outcome}))


@pytest.fixture
def shown(clock):
    """The line that is shown of a run where ten seconds have passed."""
    file = io.StringIO()
    with progress_on_stderr(file=file, clock=clock) as display:

        def show(progress):
            display(progress)
            return file.getvalue().splitlines()[-1]

        yield show


@pytest.mark.parametrize(
    ("share_done", "line"),
    [
        (lambda done: done / 100, "50 rows (50%) · 5.0 rows/s · 10 s left · m 0.500 · 1 bad · $0.4900"),
        (lambda _: None, "50 rows · 5.0 rows/s · m 0.500 · 1 bad · $0.4900"),
    ],
)
def test_a_line_tells_rows_rate_means_bad_rows_cost_and_where_the_size_is_known_the_time_left(
    clock, shown, share_done, line
):
    progress = RunProgress(("m",), share_done)
    do(progress, 49)
    progress.add(BadRow(row=50, reason="bad"))
    clock.advance(10)

    assert shown(progress) == line


def test_who_waits_for_a_judge_hears_so_once_a_minute_and_of_the_next_rows_as_usual(progress, clock):
    target = io.StringIO()
    with progress_on_stderr(file=target, clock=clock) as display:
        for second in range(180):
            progress.outage = f"waiting for the judge of m since {second} s"
            clock.advance(1)
            display(progress)
        assert [line[:30] for line in target.getvalue().splitlines()] == ["0 rows (0%) · waiting for the "] * 3

        progress.outage = None
        do(progress, 1)
        clock.advance(10)
        display(progress)
        assert target.getvalue().splitlines()[3].startswith("1 rows (1%)")
