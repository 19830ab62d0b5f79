from __future__ import annotations

from ragspan.engine import EngineStats
from ragspan.engine.stats import EngineCounters


def is_conserved(stats: EngineStats) -> bool:
    where_they_are = stats.queued + stats.in_flight + stats.finished + sum(stats.dropped.values())
    return stats.submitted == where_they_are and stats.finished == stats.scored + stats.nothing_to_score


def test_every_transition_keeps_the_law_of_conservation():
    counters = EngineCounters()
    transitions = [
        counters.queued,
        counters.queued,
        counters.queued,
        counters.queued,
        lambda: counters.refused("queue_bytes"),
        lambda: counters.evicted("queue_full"),
        counters.taken,
        counters.taken,
        counters.taken,
        counters.scored,
        counters.nothing_to_score,
        lambda: counters.lost("capture_error"),
        lambda: counters.record_error("emitter"),
    ]
    for transition in transitions:
        transition()
        assert is_conserved(counters.stats())

    assert counters.stats() == EngineStats(
        submitted=5,
        finished=2,
        scored=1,
        nothing_to_score=1,
        dropped={"queue_bytes": 1, "queue_full": 1, "capture_error": 1},
        errors={"emitter": 1},
    )


def test_a_snapshot_does_not_change_afterwards():
    counters = EngineCounters()
    counters.refused("shutdown")
    before = counters.stats()
    counters.refused("shutdown")

    assert before.dropped == {"shutdown": 1}


def test_dropped_is_another_object_only_after_a_drop():
    counters = EngineCounters()
    counters.queued()
    before = counters.dropped
    counters.taken()
    assert counters.dropped is before
    counters.lost("shutdown")
    assert counters.dropped is not before
