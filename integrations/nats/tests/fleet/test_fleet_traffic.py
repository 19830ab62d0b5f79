"""Records on their usual way, and more of them than workers can score at once."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.slow


def test_two_workers_share_two_thousand_records(fleet):
    workers = fleet.start(2)
    records = fleet.publish(2000)
    fleet.all_scored(records, once=True)
    shares = [len(fleet.judge.asked_about(worker.name)) for worker in workers]
    assert sum(shares) == 2000
    assert min(shares) > 0
