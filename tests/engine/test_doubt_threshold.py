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
    "a bad hour": lambda draw: [draw.random() ** (0.1 if 1000 < number < 1500 else 3) for number in range(3000)],
}


@pytest.mark.parametrize("course", COURSES)
@pytest.mark.parametrize("share", ["0.2", "0.2:0.1"])
def test_the_share_holds_whatever_the_answers_are_like(course, share, draw):
    wanted = JudgeShare.of(share)
    found = chosen(DoubtThreshold(wanted, draw=draw.random), COURSES[course](draw), draw, wanted)

    assert abs(asked(found) - wanted.total * 3000) <= 18
    for start in range(0, 3000, 500):
        assert abs(asked(found[start : start + 500]) - wanted.total * 500) <= 40, start


def test_the_most_doubtful_are_chosen(draw):
    doubts = COURSES["evenly"](draw)
    found = chosen(DoubtThreshold(FIFTH, draw=draw.random), doubts, draw)

    doubtful = [doubt for doubt, why in zip(doubts, found, strict=True) if why == "doubtful"]
    assert sum(doubt > 0.8 for doubt in doubtful) / len(doubtful) > 0.9
    sure = [why for doubt, why in zip(doubts, found, strict=True) if doubt > 0.95]
    assert asked(sure) / len(sure) > 0.97


def test_without_room_only_the_random_part_is_left(draw):
    found = chosen(DoubtThreshold(FIFTH, draw=draw.random), COURSES["evenly"](draw), draw, room=0.0)

    assert set(found) == {"random", None}
    assert asked(found) == pytest.approx(150, abs=40)
