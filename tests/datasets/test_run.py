"""Records come back scored, in their order, a bounded number at a time."""

from __future__ import annotations

import asyncio
import threading

import pytest

from ragspan.config import Settings
from ragspan.datasets import run as run_module
from ragspan.datasets.run import Plan, run
from ragspan.outcomes import Score
from ragspan.records import RagRecord

PATIENCE = 20.0


def row(response="r"):
    return {"question": "q", "contexts": ["c"], "answer": response}


class HoldsBackTheFirst:
    """Scores the first record last."""

    name = "held"

    def __init__(self, others):
        self._others = others
        self._all_done = threading.Event()
        self._lock = threading.Lock()

    def score(self, record):
        if record.response == "first":
            assert self._all_done.wait(PATIENCE)
        else:
            with self._lock:
                self._others -= 1
                if not self._others:
                    self._all_done.set()
        return Score(value=1.0)


@pytest.fixture
def evaluated():
    """Evaluates rows, and returns what became of each."""

    def evaluate(rows, metric, **more):
        plan = Plan(data=rows, metrics=[metric], settings=Settings(judging="thread", concurrency=2), **more)
        return run(plan)

    return evaluate


def test_a_slow_record_holds_back_those_after_it():
    rows = [row("first"), *(row(str(number)) for number in range(5))]
    plan = Plan(data=rows, metrics=[HoldsBackTheFirst(5)], settings=Settings(judging="thread", concurrency=3))

    assert [result.row for result in run(plan).results()] == [1, 2, 3, 4, 5, 6]


def test_no_more_records_are_on_their_way_than_there_is_room_for(length_metric, evaluated):
    read = []
    most_ahead = 0

    def rows():
        for number in range(300):
            read.append(number)
            yield row()

    def on_row(progress):
        nonlocal most_ahead
        most_ahead = max(most_ahead, len(read) - progress.rows)

    evaluated(rows(), length_metric, on_row=on_row)

    # The table's sample and one more are read before they are on their way.
    assert most_ahead <= run_module._LEAST_ROWS + 51


def test_a_record_larger_than_all_the_room_goes_alone(length_metric, evaluated, monkeypatch):
    monkeypatch.setattr(run_module, "_MAX_BYTES", 1)

    assert evaluated([row(), row()], length_metric).rows == 2


def test_bad_rows_keep_their_place(length_metric, evaluated, tmp_path):
    evaluation = evaluated([row(), "no row", row()], length_metric, output=tmp_path / "r.csv")

    assert [bad.row for bad in evaluation.bad_rows] == [2]
    assert [result.row for result in evaluation.results()] == [1, 3]


def test_one_and_the_same_record_may_come_twice(length_metric, evaluated):
    record = RagRecord(question="q", contexts=["c"], response="r")

    assert [result.row for result in evaluated([record, record], length_metric).results()] == [1, 2]


class CancelsEverything:
    """Has the engine drop the record."""

    name = "cancels"

    async def score(self, record):
        for task in asyncio.all_tasks():
            task.cancel()
        await asyncio.sleep(PATIENCE)


def test_a_record_that_the_engine_dropped_has_failed(evaluated):
    evaluation = evaluated([row(), row()], CancelsEverything())

    assert (evaluation.rows, evaluation.summary["cancels"].failed) == (2, 2)
    assert evaluation.skipped == {"worker_error": 2}


def test_nothing_comes_back_once_an_end_is_wanted(length_metric, evaluated):
    wanted = threading.Event()
    evaluation = evaluated(
        (row() for _ in range(1000)), length_metric, should_stop=wanted.is_set, on_row=lambda _: wanted.set()
    )

    assert (evaluation.rows, evaluation.is_complete) == (1, False)
