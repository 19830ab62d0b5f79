"""Records on their usual way, and more of them than workers can score at once."""

from __future__ import annotations

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.alone]


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


def test_a_worker_with_a_shorter_ack_wait_takes_nothing_out_of_the_hands_of_another(fleet):
    """All of them share one consumer, and the last that starts sets it up."""
    fleet.judge.hold_all()
    patient = fleet.worker("--ack-wait", 60, "--metrics", "completeness")
    hasty = fleet.worker("--ack-wait", 2.5)
    fleet.pause(6)  # the first one looks at the consumer every five seconds
    records = fleet.publish(40)
    fleet.until(lambda: fleet.judge.asked_about(patient.name), what="records in the hands of the first worker")
    fleet.until(lambda: len(fleet.judge.asked) >= 32, what="full hands")
    fleet.pause(4)
    fleet.judge.release()
    ends = fleet.all_scored(records, once=True)
    assert len(fleet.judge.asked) == 40
    scored = {spans[0].worker: set(spans[0].scores) for spans in ends.scored.values()}
    assert scored == {patient.name: {"completeness"}, hasty.name: {"context_adherence"}}
