"""What an engine tells about itself: counts at one moment, and what a shutdown did.

Guarantees of `EngineCounters`:
- `submitted = queued + in flight + finished + dropped` holds in every snapshot. All counts are in one immutable value, and a
  transition replaces that value by a balanced one: a reader, wherever it comes in, finds no transition half done.
- `stats` takes no lock. The transitions are steps of the queue's critical section, so only one is under way at a time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

DropReason: TypeAlias = Literal[
    "queue_full",
    "queue_bytes",
    "rate_limited",
    "shutdown",
    "capture_error",
    "redaction_failed",
    "not_running",
    "worker_error",
    "cancelled",
    "broker_unavailable",
    "stream_full",
    "too_large",
]
"""Why a capture was not scored.

`queue_full`, `queue_bytes`: the queue held as many captures, or as many bytes, as it may. `rate_limited`: more came than
may be scored. `shutdown`: submitted after it, or left over when its time was up. `capture_error`: the capture could not
say its size or be made a record. `redaction_failed`: `redact` raised, returned no text, or took longer than a metric may.
`not_running`: `RAGSPAN_ENABLED` is false. `worker_error`: the worker died while the
record was in work. `cancelled`: the task that awaited `ScoringEngine.score` was cancelled. From a sink that publishes to a broker: `broker_unavailable` and `stream_full`, it did not take the record
for as long as that was tried; `too_large`, it takes no message of this size.
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Dropped:
    """What `ScoringEngine.score` returns for a record that was not scored."""

    reason: DropReason | Literal["nothing_to_score"]
    """As `EngineStats` counts it; `nothing_to_score` where the capture turned out to be no answered request."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EngineStats:
    """Where every submitted capture is, at one moment.

    `submitted == queued + in_flight + finished + sum(dropped.values())` holds in each of them.
    """

    submitted: int = 0
    queued: int = 0
    in_flight: int = 0
    """Taken up by the worker, and not all of its scores are out."""
    finished: int = 0
    """`scored + nothing_to_score`."""
    scored: int = 0
    """Records whose metrics have all ended, whatever their outcomes."""
    nothing_to_score: int = 0
    """Captures that turned out to be no answered request."""
    dropped: Mapping[str, int]
    """By `DropReason`; reasons that did not occur are left out."""
    errors: Mapping[str, int]
    """What went wrong without losing a record, by place: `metric` (failures), `screen`, `response` (its language could not be guessed), `emitter_start`,
    `emitter` (`finish`, `late`, `abandon`, `flush`, `shutdown`), `self_metrics`, `worker`; with `export="helper"` also `helper`, for each helper
    process that died, with what it had not sent yet; and what others report to `count_error`, such as
    `callback`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ShutdownReport:
    """What became of the work that an engine still had when it was shut down."""

    finished: int
    """Records and captures that were finished between the call and the return."""
    abandoned: int
    """Those that were queued or in work when the time was up; counted as dropped, with the reason `shutdown`."""
    seconds: float
    """How long it took."""


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
