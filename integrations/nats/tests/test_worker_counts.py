"""How deliveries have ended, as statistics and as metrics."""

from __future__ import annotations

import pytest

from ragspan.testing import InMemoryTelemetry
from ragspan_nats.worker.counts import Counts, WorkerStats
from ragspan_nats.worker.delivery import ACKNOWLEDGE, Verdict

OUTAGE = Verdict(ending="nak", reason="judge_outage", delay=5.0)
STOPPED = Verdict(ending="nak", reason="stopped")
INVALID = Verdict(ending="dead_letter", reason="invalid_record", detail="text")


@pytest.fixture
def telemetry():
    return InMemoryTelemetry()


def test_a_worker_that_has_done_nothing_has_counted_nothing(telemetry):
    assert Counts(telemetry.meter_provider, lambda: 0).stats() == WorkerStats()


def test_deliveries_are_counted_by_their_end_and_reason(telemetry):
    counts = Counts(telemetry.meter_provider, lambda: 7)
    for verdict in (ACKNOWLEDGE, ACKNOWLEDGE, OUTAGE, OUTAGE, STOPPED, INVALID):
        counts.ended(verdict)

    assert counts.stats() == WorkerStats(
        in_flight=7,
        acknowledged=2,
        nacked={"judge_outage": 2, "stopped": 1},
        dead_lettered={"invalid_record": 1},
    )


def test_the_metrics_say_the_same(telemetry):
    in_flight = [3]
    counts = Counts(telemetry.meter_provider, lambda: in_flight[0])
    for verdict in (ACKNOWLEDGE, ACKNOWLEDGE, OUTAGE, INVALID):
        counts.ended(verdict)

    measured = telemetry.measurements()
    assert sorted(measured["ragspan.fleet.deliveries"], key=str) == [
        ({"ragspan.result": "acknowledged"}, 2),
        ({"ragspan.result": "dead_lettered", "ragspan.reason": "invalid_record"}, 1),
        ({"ragspan.result": "nacked", "ragspan.reason": "judge_outage"}, 1),
    ]
    assert measured["ragspan.fleet.in_flight"] == [({}, 3)]
    in_flight[0] = 1
    assert telemetry.measurements()["ragspan.fleet.in_flight"] == [({}, 1)]


def test_statistics_that_were_taken_stay_as_they_were(telemetry):
    counts = Counts(telemetry.meter_provider, lambda: 0)
    counts.ended(OUTAGE)
    before = counts.stats()
    counts.ended(OUTAGE)

    assert (before.nacked, counts.stats().nacked) == ({"judge_outage": 1}, {"judge_outage": 2})
