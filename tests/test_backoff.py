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
