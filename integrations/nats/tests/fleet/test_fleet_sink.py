"""From an application's answers to their scores, through a sink."""

from __future__ import annotations

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.alone]


def test_an_application_keeps_answering_while_its_broker_is_away(fleet):
    """Its sink has room for a part of what it answers meanwhile."""
    fleet.worker()
    application, records = fleet.application(2400, 0.005, environment={"RAGSPAN_QUEUE_SIZE": "500"})
    fleet.until(lambda: len(fleet.backend.records()) > 50, what="the first answers to be scored")
    fleet.broker.stop()
    assert application.says() == {"answered": 2400}
    fleet.broker.start()
    stats = application.says()
    fleet.until_empty()

    assert stats["is_out"]
    assert stats["slowest"] < 5
    assert set(stats["dropped"]) == {"queue_full"}
    assert stats["published"] + stats["dropped"]["queue_full"] == 2400
    ends = fleet.ends(records, dropped=stats["dropped"]["queue_full"])
    assert len(ends.scored) == stats["published"] >= 50 + 500  # those before, and those that the queue held


def test_two_applications_two_workers_and_a_broker_that_starts_anew(fleet):
    fleet.judge.latency = 0.02
    fleet.start(2, "--ack-wait", 2)
    started = [fleet.application(300, 0.01) for _ in range(2)]
    fleet.until(lambda: len(fleet.backend.records()) > 100, what="the first answers to be scored")
    fleet.broker.restart()
    published = 0
    for application, _ in started:
        application.says()
        published += application.says()["published"]
    fleet.until_empty()

    assert published == 600
    records = [record for _, records in started for record in records]
    assert set(fleet.ends(records).scored) == set(records)
