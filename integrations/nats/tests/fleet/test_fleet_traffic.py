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


def test_a_worker_takes_no_more_records_than_it_scores_at_a_time(fleet):
    fleet.judge.hold_all()
    worker = fleet.worker("--concurrency", 3)
    records = fleet.publish(50)
    fleet.until(lambda: len(fleet.judge.asked) == 3, what="three records in flight")
    fleet.pause(1)
    assert fleet.in_work() == 3
    assert worker.figures()["in_flight"] == 3
    fleet.judge.release()
    fleet.all_scored(records)
