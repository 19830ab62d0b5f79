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


def test_a_worker_that_is_started_before_its_broker_waits_for_it(make_fleet, make_broker):
    broker = make_broker()
    fleet = make_fleet(broker)
    worker = fleet.worker(ready=False)
    worker.until_it_says("cannot be used")
    assert not worker.is_ready
    broker.start()
    records = fleet.publish(3)
    fleet.all_scored(records)


def test_a_worker_whose_broker_is_away_ends_at_once_when_it_is_told_to(make_fleet, make_broker):
    worker = make_fleet(make_broker()).worker("--drain-timeout", 600, ready=False)
    worker.until_it_says("cannot be used")
    worker.stop()

    assert worker.ended() == 0


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
