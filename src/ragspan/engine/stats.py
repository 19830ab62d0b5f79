"""What an engine tells about itself: counts at one moment, and what a shutdown did."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

DropReason: TypeAlias = Literal[
    "queue_full",
    "queue_bytes",
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
"""Why a capture was not scored: docs/production.md says what each means and what to do. The last three come from sinks to a broker."""


@dataclass(frozen=True, kw_only=True)
class Dropped:
    """What `ScoringEngine.score` returns for a record that was not scored."""

    reason: DropReason | Literal["nothing_to_score"]
    """As `EngineStats` counts it; `nothing_to_score` where the capture turned out to be no answered request."""


class EngineStats(NamedTuple):
    """Where every submitted capture is, at one moment.

    `submitted == queued + in_flight + done + sum(dropped.values())` holds in each of them: an engine replaces this
    value as a whole and never changes it.
    """

    submitted: int = 0
    queued: int = 0
    in_flight: int = 0
    """Taken up by the worker, and not all of its scores are out."""
    finished: int = 0
    """Records whose metrics have all ended, whatever their outcomes; of a sink, those that it published."""
    nothing_to_score: int = 0
    """Captures that turned out to be no answered request."""
    dropped: Mapping[str, int] = {}
    """By `DropReason`; reasons that did not occur are left out."""
    errors: Mapping[str, int] = {}
    """What went wrong without losing a record, by place: `metric` (failures), `screen`, `emitter_start`, `emitter` (`finish`,
    `late`, `abandon`, `flush`, `shutdown`), `self_metrics`, `worker`; `helper`, for each helper process that died in work; and
    what others report to `count_error`, such as `callback`."""

    @property
    def done(self) -> int:
        """`finished + nothing_to_score`."""
        return self.finished + self.nothing_to_score

    @property
    def losses(self) -> str:
        """What was dropped, in words; not what a caller cancelled, nor what the end of the process costs, which is told there."""
        shown = {why: number for why, number in self.dropped.items() if why not in {"cancelled", "shutdown"}}
        return ", ".join(f"{why} {number}" for why, number in shown.items())


@dataclass(frozen=True, kw_only=True)
class ShutdownReport:
    """What became of the work that an engine still had when it was shut down."""

    finished: int
    """Records and captures that were finished between the call and the return."""
    abandoned: int
    """Those that were queued or in work when the time was up; counted as dropped, with the reason `shutdown`."""
    seconds: float
    """How long it took."""
