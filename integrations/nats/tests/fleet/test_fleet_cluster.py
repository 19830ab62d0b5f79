"""A cluster of three brokers, which keep three copies of the stream, and lose one of themselves."""

from __future__ import annotations

import pytest
from fleet_parts import STREAM

pytestmark = pytest.mark.slow

SHORT = ("--ack-wait", 5)
COPIES = {"RAGSPAN_NATS_REPLICAS": "3"}


@pytest.fixture
def fleet(make_fleet, cluster):
    """A fleet whose workers make the streams, in three copies."""
    return make_fleet(cluster)


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_a_broker_that_leaves_in_mid_work_takes_nothing_along(fleet, cluster, end):
    fleet.judge.latency = 0.05
    fleet.start(2, *SHORT, environment=COPIES)
    records = fleet.publish(400)
    fleet.until(lambda: len(fleet.backend.records()) > 100, what="the first records to be scored")
    for stream in (STREAM.name, STREAM.dead_stream):
        fleet.until(lambda stream=stream: cluster.copies_of(stream) == 3, what=f"three copies of {stream}")
    getattr(cluster.leader_of(STREAM.name), end)()
    # What the leader had delivered last, the others may not have heard of: they deliver it again as if for the first time.
    fleet.all_scored(records, unmarked=True)
