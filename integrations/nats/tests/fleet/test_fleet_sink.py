"""From an application's answers to their scores, through a sink."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.slow


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
