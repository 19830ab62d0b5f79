"""A judge that is away."""

from __future__ import annotations

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.alone]


def test_an_outage_of_the_judge_costs_few_deliveries_and_requests(fleet):
    """What was in flight when it began is given back; after that single records show whether it is over."""
    fleet.judge.status = 500
    worker = fleet.worker("--concurrency", 2)
    records = fleet.publish(100)
    fleet.until(lambda: worker.figures()["nacked"].get("judge_outage", 0) > 2, what="a single record that fails, too")
    assert worker.is_ready
    assert fleet.backend.answers() == []
    fleet.judge.status = 200
    fleet.until_empty()

    nacked = worker.figures()["nacked"]["judge_outage"]
    assert nacked < 10  # a worker that goes on as before gives back all of them
    # Each request is tried three times, then three times without its schema, of which a 500 may speak; and the outage may end
    # between two tries of one that then succeeds.
    assert len(fleet.judge.asked) <= (nacked + 1) * 6 + 99
    ends = fleet.ends(records)
    assert set(ends.scored) == set(records)
    assert not ends.again
    assert sum(spans[0].delivery - 1 for spans in ends.scored.values()) == nacked
