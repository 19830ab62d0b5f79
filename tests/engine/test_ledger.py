from __future__ import annotations

from ragspan.engine import EngineStats
from ragspan.engine._ledger import Ledger


def is_conserved(stats: EngineStats) -> bool:
    where_they_are = stats.queued + stats.in_flight + stats.finished + sum(stats.dropped.values())
    return stats.submitted == where_they_are and stats.finished == stats.scored + stats.nothing_to_score


def test_every_transition_keeps_the_law_of_conservation():
    ledger = Ledger()
    transitions = [
        ledger.queued,
        ledger.queued,
        ledger.queued,
        ledger.queued,
        lambda: ledger.refused("queue_bytes"),
        lambda: ledger.evicted("queue_full"),
        ledger.taken,
        ledger.taken,
        ledger.taken,
        ledger.scored,
        ledger.nothing_to_score,
        lambda: ledger.lost("capture_error"),
        lambda: ledger.went_wrong("emitter"),
    ]
    for transition in transitions:
        transition()
        assert is_conserved(ledger.stats())

    assert ledger.stats() == EngineStats(
        submitted=5,
        finished=2,
        scored=1,
        nothing_to_score=1,
        dropped={"queue_bytes": 1, "queue_full": 1, "capture_error": 1},
        errors={"emitter": 1},
    )


def test_a_snapshot_does_not_change_afterwards():
    ledger = Ledger()
    ledger.refused("shutdown")
    before = ledger.stats()
    ledger.refused("shutdown")

    assert before.dropped == {"shutdown": 1}


def test_dropped_is_another_object_only_after_a_drop():
    ledger = Ledger()
    ledger.queued()
    before = ledger.dropped
    ledger.taken()
    assert ledger.dropped is before
    ledger.lost("shutdown")
    assert ledger.dropped is not before
