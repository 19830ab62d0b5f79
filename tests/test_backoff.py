from __future__ import annotations

from functools import partial

import pytest

from ragspan.backoff import Backoff, backoff


@pytest.fixture
def service(clock, monkeypatch):
    """The pauses of what asks a service, without chance."""
    monkeypatch.setattr("ragspan.backoff.backoff", partial(backoff, draw=lambda: 0.0))
    return Backoff(first=0.25, longest=10.0, clock=clock)


def test_pauses_grow_with_each_refusal_up_to_the_longest(service, clock):
    pauses = []
    for _ in range(8):
        service.refused()
        pauses.append(service.remaining)
        clock.advance(service.remaining)

    assert pauses == [0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 10.0, 10.0]


def test_the_first_success_ends_the_pause(service):
    service.refused()
    service.succeeded()

    assert (service.remaining, service.refusals) == (0, 0)
    service.refused()
    assert service.remaining == 0.25


@pytest.mark.parametrize(
    ("tries", "draw", "pause"),
    [
        (1, 0.0, 1.0),
        (2, 0.0, 2.0),
        (1, 1.0, 0.5),
        (4, 0.5, 6.0),
        (5, 0.0, 16.0),
        (6, 0.0, 30.0),
        (6, 0.5, 22.5),
        (9999, 0.0, 30.0),
    ],
)
def test_a_pause_doubles_up_to_the_longest_and_chance_takes_up_to_half_of_it(tries, draw, pause):
    assert backoff(tries, draw=lambda: draw) == pause
    assert backoff(tries, first=2.0, longest=60.0, draw=lambda: draw) == 2 * pause


def test_a_refusal_during_a_pause_has_no_effect(service, clock):
    service.refused()
    clock.advance(0.2)
    service.refused()
    assert (service.refusals, service.remaining) == (1, pytest.approx(0.05))
    clock.advance(1)
    assert service.remaining == 0
