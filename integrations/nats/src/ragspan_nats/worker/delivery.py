"""A message in hand, and how its delivery ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

from ragspan.outcomes import ScoredRecord
from ragspan.records import RagRecord

if TYPE_CHECKING:
    from nats.aio.msg import Msg
    from opentelemetry.sdk.trace import ReadableSpan

EARLIER_DELIVERIES = "Ragspan-Earlier-Deliveries"
"""Header of a message that was put into the stream once more: how often it had been delivered before."""

Ending: TypeAlias = Literal["acknowledge", "give_back", "put_aside"]

Reason: TypeAlias = Literal[
    "judge_outage",
    "export_failed",
    "emitter_error",
    "lost",
    "stopped",
    "not_put_aside",
    "not_confirmed",
    "invalid_record",
    "redaction_failed",
    "deliveries_used_up",
]
"""Why a delivery was not acknowledged; `docs/fleet.md` says when that is.

`judge_outage`, `export_failed`: the judge's service, or the tracing tool, was away. `emitter_error`, `lost`: a defect kept the
record from its end. `stopped`: the worker ended. `not_put_aside`, `not_confirmed`: the broker could not be told.
`invalid_record`: the message holds none. `redaction_failed`: `RAGSPAN_REDACT` failed for it. `deliveries_used_up`: it was delivered more often than it may be.
"""


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
        """By which all deliveries of one message are known."""
        return self.sequence, self.stored_at

    @property
    def earlier(self) -> int:
        """Deliveries before it was put into the stream once more."""
        return earlier_deliveries_in(self.headers)


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """What is to become of a delivery, and why."""

    ending: Ending
    reason: Reason | None = None
    """None for one that is acknowledged."""
    detail: str = ""
    """For people; never a text of a user."""
    delay: float = 0.0
    """Seconds until the broker delivers it again, when it is given back."""

    def __post_init__(self) -> None:
        if (self.reason is None) != (self.ending == "acknowledge"):
            raise ValueError(f"a delivery ends with {self.ending!r} for the reason {self.reason!r}")


ACKNOWLEDGE = Verdict(ending="acknowledge")


@dataclass(slots=True, eq=False)
class Delivery:
    """A record in hand.

    It belongs to one thread at a time: the worker's loop, then the engine's worker, the export line, the native scores, and the loop again.
    """

    arrival: Arrival
    record: RagRecord
    taken_at: float
    """Seconds of the monotonic clock."""
    size: int = 0
    """Bytes of the record's JSON."""
    spans: list[ReadableSpan] = field(default_factory=list)
    """Those of the answer that have ended and are to be exported."""
    verdict: Verdict | None = None
    """None as long as it is not scored."""
    scored: ScoredRecord | None = None
    """Its scores, for native writers; None unless it is to be acknowledged."""
    is_exported: bool = False
    """The exporters have taken its spans."""
    waits_since: float | None = None
    """Since when its export is tried in vain, or its native scores are being written; of the monotonic clock."""
    is_settling: bool = False
    """The broker is being told how it has ended."""
    is_given_back: bool = False
    """It is being told that somebody else may have it."""
    is_orphan: bool = False
    """Its stream is gone, so that nobody waits to hear how it has ended."""

    @property
    def count(self) -> int:
        """Which delivery of the record this is, counting those before it was a dead letter."""
        return self.arrival.earlier + self.arrival.number
