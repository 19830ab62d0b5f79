"""The threshold that chooses the most doubtful answers."""

from __future__ import annotations

import random

import pytest

from ragspan.engine.judge_share_decisions import DoubtThreshold
from ragspan.judge_share import JudgeShare

FIFTH = JudgeShare.of("0.2")


@pytest.fixture
def draw():
    return random.Random(5)


def chosen(threshold, doubts, draw, share=FIFTH, room=1.0):
    return [threshold.choose(doubt, is_drawn=draw.random() < share.random, room=room) for doubt in doubts]


def asked(found):
    return sum(one is not None for one in found)


COURSES = {
    "evenly": lambda draw: [draw.random() for _ in range(3000)],
    "all alike": lambda draw: [0.3] * 3000,
    "two kinds": lambda draw: [float(draw.random() < 0.02) for _ in range(3000)],
    "worse and worse": lambda draw: [number / 3000 for number in range(3000)],
    "better and better": lambda draw: [1 - number / 3000 for number in range(3000)],
    "a bad hour": lambda draw: [draw.random() ** (0.1 if 1000 < number < 1500 else 3) for number in range(3000)],
    "in bursts": lambda draw: [draw.random() ** (0.1 if number % 300 < 30 else 3) for number in range(3000)],
    "more doubtful than usual": lambda draw: [0.95 + draw.random() / 20 for _ in range(3000)],
    "less doubtful than usual": lambda draw: [draw.random() / 50 for _ in range(3000)],
}


@pytest.mark.parametrize("course", COURSES)
@pytest.mark.parametrize("share", ["0.2", "0.2:0.1", "0.05:0.01", "0.6"])
def test_the_share_holds_whatever_the_answers_are_like(course, share, draw):
    wanted = JudgeShare.of(share)
    found = chosen(DoubtThreshold(wanted, draw=draw.random), COURSES[course](draw), draw, wanted)

    assert abs(asked(found) - wanted.total * 3000) <= 18
    for start in range(0, 3000, 500):
        assert abs(asked(found[start : start + 500]) - wanted.total * 500) <= 40, start


@pytest.mark.parametrize("course", COURSES)
def test_the_share_holds_over_many_short_processes(course, draw):
    doubts = COURSES[course](draw)
    found = [
        one
        for start in range(0, 3000, 100)
        for one in chosen(DoubtThreshold(FIFTH, draw=draw.random), doubts[start : start + 100], draw)
    ]

    # Where each answer is more doubtful than all before, or less, the threshold cannot follow: that costs a process a few answers.
    assert asked(found) / 600 == pytest.approx(1, abs=0.3 if "and" in course else 0.1)


def test_the_most_doubtful_are_chosen(draw):
    doubts = COURSES["evenly"](draw)
    found = chosen(DoubtThreshold(FIFTH, draw=draw.random), doubts, draw)

    doubtful = [doubt for doubt, why in zip(doubts, found, strict=True) if why == "doubtful"]
    assert sum(doubt > 0.8 for doubt in doubtful) / len(doubtful) > 0.9
    sure = [why for doubt, why in zip(doubts, found, strict=True) if doubt > 0.95]
    assert asked(sure) / len(sure) > 0.97


def test_whether_an_answer_is_doubtful_does_not_depend_on_the_draw(draw):
    """Each answer is once drawn and once not, after the same past."""
    doubts = COURSES["evenly"](draw)[:300]
    for at in range(250, 300):
        whys = []
        for is_drawn in (True, False):
            own = random.Random(at)
            threshold = DoubtThreshold(FIFTH, draw=own.random)
            chosen(threshold, doubts[:at], own)
            whys.append(threshold.choose(doubts[at], is_drawn=is_drawn))
        assert whys in (["doubtful", "doubtful"], ["random", None])


def test_without_room_only_the_random_part_is_left(draw):
    found = chosen(DoubtThreshold(FIFTH, draw=draw.random), COURSES["evenly"](draw), draw, room=0.0)

    assert set(found) == {"random", None}
    assert asked(found) == pytest.approx(150, abs=40)


def test_half_the_room_is_half_of_the_doubtful_ones(draw):
    found = chosen(DoubtThreshold(FIFTH, draw=draw.random), COURSES["evenly"](draw), draw, room=0.5)

    assert asked(found) == pytest.approx((0.05 + 0.15 / 2) * 3000, rel=0.08)


def test_room_that_comes_back_is_not_made_up_for(draw):
    threshold = DoubtThreshold(FIFTH, draw=draw.random)
    chosen(threshold, COURSES["evenly"](draw), draw, room=0.0)
    found = chosen(threshold, COURSES["evenly"](draw)[:500], draw)

    assert asked(found) < 100 + 35


def test_a_share_that_is_random_alone_has_no_doubtful_ones(draw):
    share = JudgeShare.of("0.2:0.2")
    found = chosen(DoubtThreshold(share, draw=draw.random), COURSES["evenly"](draw), draw, share)

    assert "doubtful" not in found


def test_memory_does_not_grow(draw):
    threshold = DoubtThreshold(FIFTH, draw=draw.random)
    chosen(threshold, COURSES["evenly"](draw), draw)

    assert len(threshold._recent) == len(threshold._sorted) == 500
    assert sorted(threshold._recent) == threshold._sorted
