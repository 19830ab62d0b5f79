from __future__ import annotations

import pytest

from ragspan_nats.worker.delivery import ACKNOWLEDGE, JudgeBackoff, Verdict

AWAY = Verdict(ending="nak", reason="judge_outage")


@pytest.fixture
def outages(clock):
    return JudgeBackoff(clock=clock)


def test_without_an_outage_as_many_are_scored_as_may_be(outages):
    outages.note(ACKNOWLEDGE)

    assert outages.limit(16) == 16


def test_after_a_failure_nothing_is_taken_up_and_then_a_single_record(outages, clock):
    outages.note(AWAY)
    assert outages.limit(16) == 0
    clock.now += 1

    assert outages.limit(16) == 1


def test_what_fails_together_counts_once(outages, clock):
    for _ in range(16):
        outages.note(AWAY)
    clock.now += 1

    assert outages.limit(16) == 1


def test_each_record_that_fails_alone_makes_the_pause_longer_up_to_half_a_minute(outages, clock):
    pauses = []
    for _ in range(7):
        outages.note(AWAY)
        began = clock.now
        while not outages.limit(16):
            clock.now += 0.5
        pauses.append(clock.now - began)

    assert pauses == [1, 2, 5, 10, 30, 30, 30]


def test_a_record_that_is_scored_ends_the_outage_at_once(outages):
    outages.note(AWAY)
    outages.note(ACKNOWLEDGE)

    assert outages.limit(16) == 16


def test_a_record_that_ends_for_another_reason_says_nothing_about_the_judge(outages, clock):
    outages.note(Verdict(ending="nak", reason="export_failed"))
    assert outages.limit(16) == 16
    outages.note(AWAY)
    outages.note(Verdict(ending="dead_letter", reason="export_failed"))
    clock.now += 1

    assert outages.limit(16) == 1


def test_a_dead_letter_of_an_outage_belongs_to_it(outages):
    outages.note(Verdict(ending="dead_letter", reason="judge_outage"))

    assert outages.limit(16) == 0
