"""The counts: every transition of a capture in one place, each of them keeping the law of conservation.

Guarantees:
- `submitted = queued + in flight + finished + dropped` holds in every snapshot. All counts stand in one immutable value,
  and a transition replaces that value by a balanced one: a reader, wherever it comes in, finds no transition half done.
- `stats` takes no lock. The transitions are steps of the queue's critical section, so only one is under way at a time.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ragspan.engine.stats import DropReason, EngineStats


class _Counts(NamedTuple):
    submitted: int = 0
    queued: int = 0
    in_flight: int = 0
    scored: int = 0
    nothing_to_score: int = 0
    dropped: Mapping[str, int] = {}  # never changed in place
    errors: Mapping[str, int] = {}


class EngineCounters:
    """Counts what becomes of captures."""

    def __init__(self) -> None:
        self._counts = _Counts()

    @property
    def submitted(self) -> int:
        return self._counts.submitted

    @property
    def finished(self) -> int:
        return self._counts.scored + self._counts.nothing_to_score

    @property
    def dropped(self) -> Mapping[str, int]:
        """A new mapping after each drop: `is` tells whether anything was dropped since."""
        return self._counts.dropped

    def stats(self) -> EngineStats:
        now = self._counts
        return EngineStats(
            submitted=now.submitted,
            queued=now.queued,
            in_flight=now.in_flight,
            finished=now.scored + now.nothing_to_score,
            scored=now.scored,
            nothing_to_score=now.nothing_to_score,
            dropped=dict(now.dropped),
            errors=dict(now.errors),
        )

    def queued(self) -> None:
        """Submitted, and waiting from now on."""
        now = self._counts
        self._counts = now._replace(submitted=now.submitted + 1, queued=now.queued + 1)

    def refused(self, reason: DropReason) -> None:
        """Submitted, and dropped at once."""
        now = self._counts
        self._counts = now._replace(submitted=now.submitted + 1, dropped=_one_more(now.dropped, reason))

    def evicted(self, reason: DropReason) -> None:
        """Dropped from the queue."""
        now = self._counts
        self._counts = now._replace(queued=now.queued - 1, dropped=_one_more(now.dropped, reason))

    def taken(self) -> None:
        """From the queue into work."""
        now = self._counts
        self._counts = now._replace(queued=now.queued - 1, in_flight=now.in_flight + 1)

    def scored(self) -> None:
        now = self._counts
        self._counts = now._replace(in_flight=now.in_flight - 1, scored=now.scored + 1)

    def nothing_to_score(self) -> None:
        now = self._counts
        self._counts = now._replace(in_flight=now.in_flight - 1, nothing_to_score=now.nothing_to_score + 1)

    def lost(self, reason: DropReason) -> None:
        """Dropped while in work."""
        now = self._counts
        self._counts = now._replace(in_flight=now.in_flight - 1, dropped=_one_more(now.dropped, reason))

    def record_error(self, place: str) -> None:
        """An error that loses no record."""
        now = self._counts
        self._counts = now._replace(errors=_one_more(now.errors, place))


def _one_more(counts: Mapping[str, int], key: str) -> dict[str, int]:
    return {**counts, key: counts.get(key, 0) + 1}
