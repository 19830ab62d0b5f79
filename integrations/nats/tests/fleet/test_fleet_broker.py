"""A broker that is away, starts anew, hangs, or has lost what workers rely on."""

from __future__ import annotations

import pytest
from fleet_parts import STREAM

pytestmark = pytest.mark.slow

SHORT = ("--ack-wait", 2.5)


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_a_restart_of_the_broker_in_mid_work_loses_nothing(fleet, end):
    fleet.judge.latency = 0.05
    fleet.start(2, *SHORT)
    records = fleet.publish(600)
    fleet.until(lambda: len(fleet.backend.records()) > 150, what="the first records to be scored")
    getattr(fleet.broker, end)()
    fleet.broker.start()
    # A broker that is killed may deliver again what was acknowledged, or keep it for good.
    fleet.until(lambda: fleet.backend.records() >= set(records), what="all records to be scored")
    if end == "stop":
        fleet.all_scored(records)


@pytest.mark.parametrize("what", ["stream", "consumer", "dead letters"])
def test_what_is_deleted_while_nothing_is_in_it_is_made_anew(fleet, what):
    fleet.worker()
    if what == "consumer":
        fleet.broker.ask(lambda client: client.jetstream().delete_consumer(STREAM.name, STREAM.consumer))
    else:
        fleet.broker.drop_stream(STREAM.name if what == "stream" else STREAM.dead_stream)
    fleet.until(lambda: fleet.broker.stream(STREAM.name), what="a stream of records")
    fleet.put(b"poison")
    assert fleet.all_scored(fleet.publish(3)).others == ["invalid_record"]
