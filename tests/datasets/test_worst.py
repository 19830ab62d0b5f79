"""The rows with the lowest scores."""

from __future__ import annotations

import random

from ragspan.datasets.results import WORST_KEPT, EvaluatedRow, Evaluation
from ragspan.datasets.worst import Worst
from ragspan.outcomes import NotApplicable, Score
from ragspan.records import RagRecord

RECORD = RagRecord(question="q", contexts=None, response="r")


def row(number, **values):
    outcomes = {
        metric: NotApplicable(reason="no_response") if value is None else Score(value=value)
        for metric, value in values.items()
    }
    return EvaluatedRow(row=number, record=RECORD, outcomes=outcomes)


def kept_of(rows, *metrics):
    worst = Worst(metrics)
    for evaluated in rows:
        worst.offer(evaluated)
    return worst.rows()


def test_the_lowest_are_kept_whatever_the_order():
    values = [number / 1000 for number in range(500)]
    random.Random(3).shuffle(values)
    kept = kept_of([row(number, m=value) for number, value in enumerate(values)], "m")

    assert sorted(evaluated.outcomes["m"].value for evaluated in kept) == [place / 1000 for place in range(WORST_KEPT)]
    assert [evaluated.row for evaluated in kept] == sorted(evaluated.row for evaluated in kept)


def test_of_equal_scores_the_earlier_rows_are_kept():
    kept = kept_of([row(number, m=0.5) for number in range(WORST_KEPT + 5)], "m")

    assert [evaluated.row for evaluated in kept] == list(range(WORST_KEPT))


def test_rows_without_a_score_are_not_among_them():
    assert kept_of([row(1, m=None), row(2, m=0.5)], "m") == (row(2, m=0.5),)


def test_a_row_that_is_low_by_two_metrics_is_there_once_and_each_metric_has_its_order():
    kept = kept_of([row(1, m=0.9, n=0.1), row(2, m=0.2, n=0.3), row(3, m=0.2, n=None)], "m", "n")
    evaluation = Evaluation(metrics=("m", "n"), rows=3, summary={}, worst=kept)

    assert [evaluated.row for evaluated in kept] == [1, 2, 3]
    assert [evaluated.row for evaluated in evaluation.worst_by("m")] == [2, 3, 1]
    assert [evaluated.row for evaluated in evaluation.worst_by("n")] == [1, 2]
