"""A message in flight, and how its delivery ends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

from ragspan.record_json import MAX_JSON

if TYPE_CHECKING:
    from nats.aio.msg import Msg
    from opentelemetry.sdk.trace import ReadableSpan

    from ragspan.telemetry import AnswerHandle

Ending: TypeAlias = Literal["acknowledged", "nacked", "dead_lettered"]
"""The results of deliveries in `ragspan.telemetry.semconv`."""
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
"""Why a delivery was not acknowledged. `docs/fleet.md` explains them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Disposition:
    """How a delivery ends, and why."""

    ending: Ending
    reason: Reason | None = None
    """None if it is acknowledged."""
    detail: str = ""
    """For people; never a text of a user."""


ACKNOWLEDGE = Disposition(ending="acknowledged")
STOPPED = Disposition(ending="nacked", reason="stopped")


@dataclass(kw_only=True, slots=True, eq=False)
class Delivery:
    """A message in flight."""

    reply: str
    """The subject on which it is acknowledged."""
    sequence: int
    """Its number in the stream."""
    number: int
    """How often the message was delivered, this time included."""
    payload: bytes
    headers: Mapping[str, str]
    size: int = MAX_JSON
    """Bytes of the record's JSON; the largest possible number until it is read."""
    handle: AnswerHandle | None = None
    """Of its spans, as long as they are open."""
    spans: list[ReadableSpan] = field(default_factory=list)
    """The answer's spans that are to be exported."""
    span_names: Counter[str] = field(default_factory=Counter)
    """How many spans of each name were started."""
    is_judging: bool = True
    """Whether it is being scored or waits for that."""
    disposition: Disposition | None = None
    """How it ends; set before the broker hears of it."""

    @classmethod
    def of(cls, message: Msg) -> Delivery:
        metadata = message.metadata
        return cls(
            reply=message.reply,
            sequence=metadata.sequence.stream,
            number=metadata.num_delivered,
            payload=message.data,
            headers=message.headers or {},
        )

    @property
    def key(self) -> Hashable:
        """Identifies it where its spans wait for their export."""
        return self

    @property
    def is_nacked(self) -> bool:
        """Whether it is given back, so that another worker may have it."""
        return self.disposition is not None and self.disposition.ending == "nacked"
