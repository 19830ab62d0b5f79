"""Workers that are killed: nothing that they had in flight is lost, and what they had exported already says so."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.slow

SHORT = ("--ack-wait", 2.5)


def test_what_a_killed_worker_had_in_hand_is_scored_by_another(fleet):
    fleet.judge.hold_all()
    killed, other = fleet.start(2, *SHORT)
    records = fleet.publish(200)
    fleet.until(lambda: len(fleet.judge.asked_about(killed.name)) > 5, what="records in the hand of the first worker")
    killed.kill()
    fleet.judge.release()
    ends = fleet.all_scored(records, once=True)
    assert {span.worker for spans in ends.scored.values() for span in spans} == {other.name}
    given_on = {record for record in records if ends.scored[record][0].delivery == 2}
    assert given_on >= fleet.judge.asked_about(killed.name) - {""}  # a question that the kill cut off


def test_a_record_that_kills_every_worker_becomes_a_dead_letter(fleet):
    fleet.judge.hold_back("record-0")
    workers = fleet.start(3, *SHORT, "--max-deliveries", 2)
    records = fleet.publish(2)
    for times in range(1, 3):
        fleet.until_asked("record-0", times=times).kill()
    fleet.until_empty()

    ends = fleet.ends(records)
    assert ends.dead == {"record-0": "deliveries_used_up"}
    assert set(ends.scored) == {"record-1"}
    assert [worker.figures().get("dead_lettered") for worker in workers if worker.is_running] == [
        {"deliveries_used_up": 1}
    ]


def test_a_worker_that_dies_after_the_export_leaves_one_answer_that_came_twice(fleet):
    """It dies while the backend, which has the spans, has not answered yet."""
    fleet.backend.hold_replies()
    killed = fleet.worker(*SHORT)
    [record] = fleet.publish()
    fleet.until(fleet.backend.answers, what="an exported answer")
    killed.kill()
    fleet.backend.release()
    other = fleet.worker(*SHORT)
    fleet.until_empty()

    first, second = fleet.ends([record]).scored[record]
    assert (first.worker, first.delivery) == (killed.name, 1)
    assert (second.worker, second.delivery) == (other.name, 2)
