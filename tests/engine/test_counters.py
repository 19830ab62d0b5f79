from __future__ import annotations

from ragspan.engine import EngineStats
from ragspan.engine.stats import Counts


def is_conserved(stats: EngineStats) -> bool:
    where_they_are = stats.queued + stats.in_flight + stats.finished + sum(stats.dropped.values())
    return stats.submitted == where_they_are and stats.finished == stats.scored + stats.nothing_to_score


def test_a_change_leaves_what_was_read_before_as_it_was():
    before = Counts().moved(submitted=1, dropped="shutdown")
    stats = before.stats()
    after = before.moved(submitted=1, dropped="shutdown").moved(error="emitter")

    assert before.dropped == stats.dropped == {"shutdown": 1}
    assert (after.submitted, after.dropped, after.errors) == (2, {"shutdown": 2}, {"emitter": 1})


def test_dropped_is_another_object_only_after_a_drop():
    counts = Counts().moved(submitted=1, queued=1)
    assert counts.moved(queued=-1, in_flight=1).dropped is counts.dropped
    assert counts.moved(queued=-1, dropped="shutdown").dropped is not counts.dropped
