"""Records come back scored, in their order."""

from __future__ import annotations

import threading
from types import SimpleNamespace

from ragspan.datasets.in_order import Collector, InOrder
from ragspan.datasets.records import RecordRow
from ragspan.datasets.results import BadRow
from ragspan.engine import ScoringEngine
from ragspan.outcomes import MetricFailure, Score, ScoredRecord
from ragspan.records import RagRecord

PATIENCE = 20.0


def entry(row, response="r"):
    return RecordRow(row=row, record=RagRecord(question="q", contexts=None, response=response))


def never():
    return False


class HoldsBackTheFirst:
    """Scores the first record last."""

    name = "held"

    def __init__(self, others):
        self._others = others
        self._all_done = threading.Event()
        self._done = 0

    def score(self, record):
        if record.response == "first":
            assert self._all_done.wait(PATIENCE)
        else:
            self._done += 1
            if self._done == self._others:
                self._all_done.set()
        return Score(value=1.0)


class CountingEngine:
    """Scores what it was given when it is told to, and knows how much it has."""

    def __init__(self, collector):
        self._collector = collector
        self.waiting = []
        self.most = 0
        self.flushes = 0

    def submit(self, capture):
        self.waiting.append(capture.to_record())
        self.most = max(self.most, len(self.waiting))
        if len(self.waiting) == self.room:
            self.score_all()

    room = 3

    def score_all(self):
        for record in reversed(self.waiting):
            self._collector.emit(ScoredRecord(record=record, outcomes={"m": Score(value=0.5)}))
        self.waiting.clear()

    def stats(self):
        return SimpleNamespace(queued=0, in_flight=0)

    def flush(self, timeout):
        self.flushes += 1


def in_order(engine, collector, *, max_rows=3, max_bytes=10**9, should_stop=never):
    return InOrder(engine, collector, metrics=["m"], max_rows=max_rows, max_bytes=max_bytes, should_stop=should_stop)


def test_a_slow_record_holds_back_those_after_it():
    collector = Collector()
    engine = ScoringEngine(metrics=[HoldsBackTheFirst(5)], emitters=[collector], judging="thread")
    order = InOrder(engine, collector, metrics=["held"], max_rows=10, max_bytes=10**9, should_stop=never)
    entries = [entry(1, "first"), *(entry(row) for row in range(2, 7))]

    with engine:
        done = list(order.score(entries))

    assert [evaluated.row for evaluated in done] == [1, 2, 3, 4, 5, 6]
    assert all(evaluated.outcomes == {"held": Score(value=1.0)} for evaluated in done)


def test_no_more_records_are_on_their_way_than_there_is_room_for():
    collector = Collector()
    engine = CountingEngine(collector)
    read = []

    def entries():
        for row in range(1, 13):
            read.append(row)
            yield entry(row)

    order = in_order(engine, collector)
    first = next(order.score(entries()))

    assert first.row == 1
    assert (engine.most, len(read)) == (3, 3)


def test_a_record_larger_than_all_the_room_goes_alone():
    collector = Collector()
    engine = CountingEngine(collector)
    engine.room = 1
    done = list(in_order(engine, collector, max_bytes=1).score([entry(1), entry(2)]))

    assert [evaluated.row for evaluated in done] == [1, 2]
    assert engine.most == 1


def test_bad_rows_keep_their_place():
    collector = Collector()
    engine = CountingEngine(collector)
    engine.room = 2
    bad = BadRow(row=2, reason="bad")
    done = list(in_order(engine, collector).score([entry(1), bad, entry(3)]))

    assert [each.row for each in done] == [1, 2, 3]
    assert done[1] is bad


def test_one_and_the_same_record_may_come_twice():
    collector = Collector()
    engine = CountingEngine(collector)
    engine.room = 2
    same = entry(1)
    done = list(in_order(engine, collector).score([same, RecordRow(row=2, record=same.record)]))

    assert [evaluated.row for evaluated in done] == [1, 2]


def test_a_record_that_the_engine_lost_has_failed():
    collector = Collector()
    engine = CountingEngine(collector)
    engine.room = 99
    done = list(in_order(engine, collector).score([entry(1), entry(2)]))

    assert [evaluated.row for evaluated in done] == [1, 2]
    assert all(isinstance(evaluated.outcomes["m"], MetricFailure) for evaluated in done)


def test_nothing_comes_back_once_an_end_is_wanted():
    collector = Collector()
    engine = CountingEngine(collector)
    engine.room = 1
    wanted = threading.Event()
    rows = in_order(engine, collector, should_stop=wanted.is_set).score(entry(row) for row in range(1, 100))
    next(rows)
    wanted.set()

    assert list(rows) == []
