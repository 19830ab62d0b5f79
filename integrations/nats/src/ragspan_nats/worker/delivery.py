"""A message that a worker has received, and how its delivery ends."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

from ragspan.outcomes import MetricFailure, Score, ScoredRecord
from ragspan.record_json import MAX_JSON
from ragspan_nats.worker.options import WorkerOptions

if TYPE_CHECKING:
    from nats.aio.msg import Msg
    from opentelemetry.sdk.trace import ReadableSpan

EARLIER_DELIVERIES = "Ragspan-Earlier-Deliveries"
"""Header of a message that was put into the stream once more: how often it had been delivered before."""

Ending: TypeAlias = Literal["ack", "nak", "dead_letter"]

Reason: TypeAlias = Literal[
    "judge_outage",
    "export_failed",
    "emitter_error",
    "lost",
    "stopped",
    "not_dead_lettered",
    "not_confirmed",
    "invalid_record",
    "redaction_failed",
    "deliveries_used_up",
]
"""Why a delivery was not acknowledged; `docs/fleet.md` says when that is."""

_TIMEOUT = "timeout"  # how the engine names the failure of a metric that took too long
_PAUSES = (1.0, 2.0, 5.0, 10.0, 30.0)  # seconds, by how many failures came one after another


def earlier_deliveries_in(headers: Mapping[str, str]) -> int:
    """What a message's headers say of its earlier deliveries; 0 if that is no such number."""
    text = headers.get(EARLIER_DELIVERIES, "")
    return int(text) if text.isdecimal() and len(text) < 6 else 0  # noqa: PLR2004 - digits, not a meaning


@dataclass(frozen=True, kw_only=True, slots=True)
class Arrival:
    """A message as the broker delivered it."""

    reply: str
    """Where it is acknowledged."""
    sequence: int
    """Its place in the stream."""
    stored_at: float
    """When the stream took it, in Unix seconds; a stream that is made anew counts its messages from 1 again."""
    number: int
    """Which delivery of it this is, from 1."""
    payload: bytes
    headers: Mapping[str, str]

    @classmethod
    def of(cls, message: Msg) -> Arrival:
        metadata = message.metadata
        return cls(
            reply=message.reply,
            sequence=metadata.sequence.stream,
            stored_at=metadata.timestamp.timestamp(),
            number=metadata.num_delivered,
            payload=message.data,
            headers=dict(message.headers or {}),
        )

    @property
    def message(self) -> tuple[int, float]:
        """What all deliveries of one message have in common."""
        return self.sequence, self.stored_at

    @property
    def earlier(self) -> int:
        """Deliveries before it was put into the stream once more."""
        return earlier_deliveries_in(self.headers)


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """How a delivery ends, and why."""

    ending: Ending
    reason: Reason | None = None
    """None for one that is acknowledged."""
    detail: str = ""
    """For people; never a text of a user."""
    delay: float = 0.0
    """Seconds until the broker delivers it again, when it is given back."""


ACKNOWLEDGE = Verdict(ending="ack")
STOPPED = Verdict(ending="nak", reason="stopped")


@dataclass(slots=True, eq=False)
class Delivery:
    """A message in flight."""

    arrival: Arrival
    size: int = MAX_JSON
    """Bytes of the record's JSON; the largest possible until it is read."""
    task: asyncio.Task[None] | None = None
    has_left_judge: asyncio.Event = field(default_factory=asyncio.Event)
    """It is scored, or will not be."""
    spans: list[ReadableSpan] = field(default_factory=list)
    """Those of the answer that are to be exported."""
    verdict: Verdict | None = None
    """None until it is scored."""
    is_ending: bool = False
    """The broker is being told how it ends."""
    is_nacked: bool = False
    """The broker is being told that another worker may have it."""
    is_orphan: bool = False
    """Its stream is gone, so the broker is told nothing."""

    @property
    def count(self) -> int:
        """Which delivery of the record this is, those included that came before it was a dead letter."""
        return self.arrival.earlier + self.arrival.number


def verdict_on(scored: ScoredRecord, number: int, options: WorkerOptions) -> Verdict:
    """How the delivery of a record with these outcomes ends.

    Where a judge's service failed, or let every metric run into its time limit, the record comes again later. With its last
    delivery the scores that are there are better than none; without any, it becomes a dead letter.

    Args:
        scored: the record and its outcomes.
        number: which delivery of it this is, from 1.
        options: how often and how soon it may come again.
    """
    failures = [outcome for outcome in scored.outcomes.values() if isinstance(outcome, MetricFailure)]
    has_scores = any(isinstance(outcome, Score) for outcome in scored.outcomes.values())
    # One metric may take too long because of what it has to do; where none came to an end, it is the service that hangs.
    outages = [one.error_type for one in failures if one.outage or (one.error_type == _TIMEOUT and not has_scores)]
    if not outages:
        return ACKNOWLEDGE
    detail = f"{len(outages)} of {len(scored.outcomes)} metrics failed: {', '.join(sorted(set(outages)))}"[:200]
    if number < options.max_deliveries:
        return Verdict(ending="nak", reason="judge_outage", detail=detail, delay=options.back_off(number))
    if has_scores:
        return ACKNOWLEDGE
    return Verdict(ending="dead_letter", reason="judge_outage", detail=detail)


class JudgeBackoff:
    """How many records may be scored at a time: one, and ever more rarely, while the judge's service is away.

    A record that is taken up then uses up a delivery for nothing. What fails together counts as one failure, after which
    nothing is taken up for a while; then a single record shows whether the service is back.

    Args:
        clock: seconds that do not go backwards.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failures = 0
        self._until = 0.0

    def note(self, verdict: Verdict) -> None:
        """A delivery ends so."""
        if verdict.ending == "ack":
            self._failures, self._until = 0, 0.0
        elif verdict.reason == "judge_outage" and self._clock() >= self._until:
            self._until = self._clock() + _PAUSES[min(self._failures, len(_PAUSES) - 1)]
            self._failures += 1

    def limit(self, concurrency: int) -> int:
        """Records that may be scored at a time: usually `concurrency`."""
        if self._clock() < self._until:
            return 0
        return 1 if self._failures else concurrency
