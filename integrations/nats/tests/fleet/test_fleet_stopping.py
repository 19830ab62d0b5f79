"""Workers that are told to stop with work in flight."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.slow

LONG = ("--ack-wait", 600)  # what is given back does not wait for that


def test_a_worker_that_is_told_to_stop_finishes_what_it_has_in_hand(fleet):
    fleet.judge.hold_all()
    worker = fleet.worker(*LONG, "--concurrency", 4)
    records = fleet.publish(10)
    fleet.until(lambda: len(fleet.judge.asked) == 4, what="four records in flight")
    worker.stop()
    fleet.until(lambda: not worker.figures()["ready"], what="the worker to stop taking records")
    fleet.judge.release()

    assert worker.ended() == 0
    assert "4 records scored, 0 given back, 0 put aside" in worker.log
    assert len(fleet.backend.records()) == 4
    assert fleet.broker.stream("ragspan").messages == 6
    fleet.worker(*LONG)
    fleet.until_empty()
    ends = fleet.ends(records)
    assert set(ends.scored) == set(records)
    assert not ends.again


@pytest.mark.parametrize(("grace", "signals"), [(1, 1), (600, 2)])
def test_what_is_not_finished_by_the_second_signal_or_within_the_grace_another_worker_scores(fleet, grace, signals):
    fleet.judge.hold_all()
    stopped = fleet.worker(*LONG, "--drain-timeout", grace)
    records = fleet.publish(5)
    fleet.until(lambda: fleet.judge.asked_about() == set(records), what="all records in flight")
    stopped.stop()
    if signals == 2:
        fleet.until(lambda: not stopped.figures()["ready"], what="the worker to stop taking records")
        stopped.stop()
    assert stopped.ended() == 0
    assert "0 records scored, 5 given back, 0 put aside" in stopped.log
    fleet.judge.release()
    other = fleet.worker(*LONG)
    fleet.until_empty()

    ends = fleet.ends(records)
    assert {span.worker for spans in ends.scored.values() for span in spans} == {other.name}
    assert not ends.again
    assert all(spans[0].delivery == 2 for spans in ends.scored.values())
