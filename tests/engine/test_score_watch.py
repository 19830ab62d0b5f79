"""What is told of scores over time."""

from __future__ import annotations

import logging
import random

import pytest
from measured import points_of
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from ragspan.engine._score_watch import ScoreWatch
from ragspan.metrics.drift import LEAST_PAST, MOST_PAST
from ragspan.outcomes import NotApplicable, Score, ScoredRecord
from ragspan.records import RagRecord

MINUTE = 60.0


class Watching:
    def __init__(self, clock) -> None:
        self.reader = InMemoryMetricReader()
        self.clock = clock
        self.watch = ScoreWatch(MeterProvider([self.reader]).get_meter("test"), clock=self.clock)
        self.number = 0

    def take(self, response=None, **outcomes) -> None:
        self.number += 1
        self.clock.now += MINUTE
        record = RagRecord(
            question="q", contexts=["c"], response=response or f"r{self.number}", record_id=f"id{self.number}"
        )
        self.watch.take(ScoredRecord(record=record, outcomes=outcomes))

    def take_many(self, share, count, *, seed) -> None:
        draw = random.Random(seed)
        for _ in range(count):
            self.take(adherence=scored(float(draw.random() < share)))

    def points(self, name):
        return {tuple(sorted(point.attributes.items())): point.value for point in points_of(self.reader, name)}


def scored(value, *, judge="overlap"):
    return Score(value=value, threshold=0.5, judge=judge)


@pytest.fixture
def watching(fakes):
    return Watching(fakes.UnixClock())


def evidence(watching, judge="overlap"):
    return watching.points("ragspan.drift.evidence")[
        ("gen_ai.evaluation.name", "adherence"), ("ragspan.drift.source", "answers"), ("ragspan.judge", judge)
    ]


def test_scores_that_get_worse_are_told_once_with_the_lowest_of_them(watching, caplog):
    watching.take_many(0.9, MOST_PAST, seed=1)
    with caplog.at_level(logging.WARNING, "ragspan"):
        assert not caplog.records
        before = watching.number
        watching.take_many(0.3, 60, seed=2)

    (line,) = caplog.records
    told = line.getMessage()
    assert told.startswith("scores of adherence by overlap got worse: from 2026-")
    ids = [int(one.strip().removeprefix("id")) for one in told.rpartition("records")[2].split(",")]
    assert len(ids) == 5
    assert all(number > before - 60 for number in ids)
    assert evidence(watching) < 1, "it begins anew"


def test_the_evidence_of_an_alarm_is_shown_for_ten_minutes(watching, caplog):
    watching.take_many(0.9, MOST_PAST, seed=1)
    while not caplog.records:
        watching.take(adherence=scored(0.0))
    seen = [evidence(watching)]
    for _ in range(10):
        watching.take(adherence=scored(1.0))
        seen.append(evidence(watching))

    assert seen[:10] == [seen[0]] * 10
    assert seen[0] >= 1
    assert seen[10] == 0


def test_unchanged_scores_come_to_little_evidence(watching, caplog):
    watching.take_many(0.7, 3000, seed=3)

    assert not caplog.records
    assert 0 <= evidence(watching) < 1


def test_each_judge_is_watched_by_itself(watching, caplog):
    for _ in range(LEAST_PAST):
        watching.take(adherence=scored(1.0, judge="one"))
    for _ in range(LEAST_PAST):
        watching.take(adherence=scored(0.2, judge="another"))

    assert not caplog.records
    assert evidence(watching, "one") < 0.01
    assert evidence(watching, "another") < 0.01


def test_a_response_that_comes_again_is_no_further_evidence(watching, caplog):
    watching.take_many(0.9, MOST_PAST, seed=1)
    before = evidence(watching)
    for _ in range(200):
        watching.take("the same", adherence=scored(0.0))

    assert evidence(watching) < max(20 * before, 0.1)
    assert not caplog.records


def test_labels_of_a_metric_and_its_reference_are_counted_together(watching):
    watching.take(adherence=scored(0.9), adherence_reference=scored(0.1))
    watching.take("the same", adherence=scored(0.2), adherence_reference=scored(0.1))
    watching.take("the same", adherence=scored(0.2), adherence_reference=scored(0.1))
    watching.take(adherence=scored(0.9))
    watching.take(adherence=scored(0.9), adherence_reference=NotApplicable(reason="not_sampled"))

    counts = {
        (dict(key)["gen_ai.evaluation.score.label"], dict(key)["ragspan.reference.label"]): value
        for key, value in watching.points("ragspan.labels").items()
    }
    assert counts == {("pass", "fail"): 1, ("fail", "fail"): 2}


def test_names_without_end_are_not_watched_without_end(watching):
    for number in range(150):
        watching.take(adherence=scored(1.0, judge=f"judge-{number}"))

    assert len(watching.points("ragspan.drift.evidence")) == 100
