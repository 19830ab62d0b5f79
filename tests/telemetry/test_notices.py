from __future__ import annotations

import pytest

from ragspan.telemetry.notices import Notice


class Clock:
    """Stands still until it is told."""

    now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def test_a_notice_is_given_at_once_and_then_not_for_a_minute(clock, caplog):
    notice = Notice("something is amiss", clock=clock)
    notice.give()
    clock.now += 59.9
    notice.give()

    assert [entry.getMessage() for entry in caplog.records] == ["something is amiss"]


def test_a_notice_comes_again_when_the_minute_is_over(clock, caplog):
    notice = Notice("something is amiss", clock=clock)
    notice.give()
    clock.now += 60
    notice.give()

    assert len(caplog.records) == 2
