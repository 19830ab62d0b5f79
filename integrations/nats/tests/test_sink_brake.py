"""The pause while a stream takes nothing."""

from __future__ import annotations

import pytest

from ragspan_nats.publishing import Brake


@pytest.fixture
def brake(clock):
    return Brake(clock=clock)


def test_there_is_no_pause_before_the_first_refusal(brake):
    assert brake.remaining == 0


def test_pauses_grow_with_each_refusal_up_to_a_limit(brake, clock):
    pauses = []
    for _ in range(8):
        brake.press()
        pauses.append(brake.remaining)
        clock.now += brake.remaining
    assert pauses == [0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 10.0, 10.0]


def test_refusals_of_what_was_sent_before_the_pause_do_not_make_it_longer(brake, clock):
    for _ in range(64):
        brake.press()
    clock.now += 0.2
    brake.press()
    assert brake.remaining == pytest.approx(0.05)


def test_the_first_success_ends_the_pause(brake, clock):
    for _ in range(3):
        brake.press()
        clock.now += brake.remaining
    brake.press()
    brake.release()
    assert brake.remaining == 0
    brake.press()
    assert brake.remaining == 0.25
