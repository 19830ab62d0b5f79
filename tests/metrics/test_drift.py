"""Evidence that scores got worse: it comes soon after they do, and hardly ever before."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragspan.metrics.drift import LEAST_PAST, MOST_PAST, DriftDetector

MINUTE = 60.0


def feed(detector: DriftDetector, share: float, scores: int, *, seed: int, start: float = 0.0) -> float | None:
    """When the alarm came, of scores of which this share are 1 and the others 0, one a minute."""
    draw = random.Random(seed)
    for number in range(scores):
        at = start + number * MINUTE
        if detector.add(float(draw.random() < share), at) >= 1:
            return at
    return None


def test_unchanged_scores_raise_no_alarm() -> None:
    alarms = [feed(DriftDetector(), 0.7, 20_000, seed=seed) for seed in range(8)]  # 14 days each

    assert alarms.count(None) >= 7


def test_scores_that_get_worse_raise_it_within_hours() -> None:
    detector = DriftDetector()
    feed(detector, 0.8, MOST_PAST, seed=1)
    worse_from = MOST_PAST * MINUTE
    alarm = feed(detector, 0.55, 1000, seed=2, start=worse_from)

    assert alarm is not None
    assert alarm - worse_from < 3 * 3600
    assert detector.evidence >= 1
    since = detector.since
    assert since is not None
    assert abs(since - worse_from) < 3 * 3600


def test_scores_that_get_better_raise_none() -> None:
    detector = DriftDetector()
    feed(detector, 0.5, MOST_PAST, seed=1)

    assert feed(detector, 0.9, 5000, seed=2, start=MOST_PAST * MINUTE) is None


def test_a_slow_fall_of_the_mean_counts_as_much_as_failures() -> None:
    detector = DriftDetector()
    draw = random.Random(3)
    for number in range(MOST_PAST):
        detector.add(min(max(draw.gauss(0.8, 0.1), 0), 1), number * MINUTE)

    fallen = [
        detector.add(min(max(draw.gauss(0.7, 0.1), 0), 1), (MOST_PAST + number) * MINUTE) for number in range(300)
    ]
    assert any(fallen)


def test_there_is_no_evidence_before_it_is_known_what_is_usual() -> None:
    detector = DriftDetector()
    for number in range(LEAST_PAST - 2):  # it begins with two that are made up
        assert detector.add(0.0 if number % 2 else 1.0, number * MINUTE) == 0

    assert detector.evidence == 0
    assert detector.since is None


def test_after_a_reset_what_came_is_the_usual() -> None:
    detector = DriftDetector()
    feed(detector, 0.8, MOST_PAST, seed=1)
    assert feed(detector, 0.4, 1000, seed=2, start=MOST_PAST * MINUTE) is not None
    detector.reset()

    assert detector.evidence == 0
    assert feed(detector, 0.4, 2000, seed=3, start=4000 * MINUTE) is None


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_scores_without_spread_are_usual_too(value: float) -> None:
    detector = DriftDetector()

    assert max(detector.add(value, number * MINUTE) for number in range(3000)) < 1


def test_one_failure_after_many_passes_is_no_alarm_and_several_are() -> None:
    detector = DriftDetector()
    for number in range(3000):
        detector.add(1.0, number * MINUTE)

    assert [detector.add(0.0, (3000 + number) * MINUTE) >= 1 for number in range(3)] == [False, False, True]


@given(st.lists(st.floats(0, 1), min_size=LEAST_PAST, max_size=400))
def test_the_evidence_is_always_a_number(values: list[float]) -> None:
    detector = DriftDetector()
    for number, value in enumerate(values):
        detector.add(value, number * MINUTE)

    assert math.isfinite(detector.evidence)
    assert detector.evidence >= 0
