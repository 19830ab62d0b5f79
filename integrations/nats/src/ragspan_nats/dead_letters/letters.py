"""Dead letters on the broker: the message as it was, with headers that say why and when it was put aside."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ragspan_nats.message import MESSAGE_ID
from ragspan_nats.streams import StreamNames
from ragspan_nats.worker.delivery import EARLIER_DELIVERIES, Arrival

if TYPE_CHECKING:
    from nats.js import JetStreamContext

REASON = "Ragspan-Reason"
DETAIL = "Ragspan-Detail"
DELIVERIES = "Ragspan-Deliveries"
RECORD = "Ragspan-Record"
PUT_ASIDE_AT = "Ragspan-Put-Aside-At"
_OWN = (REASON, DETAIL, DELIVERIES, RECORD, PUT_ASIDE_AT, MESSAGE_ID)
_BROKERS = "Nats-"
_TIMEOUT = 10.0  # seconds
_MAX_DETAIL = 300


@dataclass(frozen=True, kw_only=True, slots=True)
class DeadLetter:
    """A message that was put aside."""

    sequence: int
    """Its place among the dead letters."""
    reason: str
    detail: str
    deliveries: int
    """How often it had been delivered."""
    record_id: str
    """As the publisher named the message; empty if it did not."""
    put_aside_at: float
    """Unix seconds."""
    payload: bytes
    headers: Mapping[str, str]
    """Those of the message as it was published."""


async def put_aside(
    jetstream: JetStreamContext, names: StreamNames, arrival: Arrival, *, reason: str, detail: str, timeout: float
) -> None:
    """Put a message among the dead letters.

    Done twice, because a worker died in between, it is there once: for as long as the broker looks for duplicates.

    Raises:
        nats.errors.Error: the broker did not take it.
    """
    headers = {name: text for name, text in arrival.headers.items() if not name.startswith(_BROKERS)}
    headers |= {
        MESSAGE_ID: f"{names.stream}-{arrival.sequence}",
        RECORD: arrival.headers.get(MESSAGE_ID, ""),
        REASON: _header_text(reason),
        DETAIL: _header_text(detail),
        DELIVERIES: str(arrival.earlier + arrival.number),
        PUT_ASIDE_AT: f"{time.time():.3f}",
    }
    await jetstream.publish(names.dead_letters, arrival.payload, timeout=timeout, headers=headers)


async def dead_letters(jetstream: JetStreamContext, names: StreamNames) -> AsyncIterator[DeadLetter]:
    """All that are there at this moment, the oldest first.

    Raises:
        nats.js.errors.NotFoundError: there is no such stream.
        nats.errors.Error: the broker does not let us, or cannot.
    """
    from nats.js.errors import NotFoundError

    state = (await jetstream.stream_info(names.dead_stream)).state
    sequence = state.first_seq
    while sequence <= state.last_seq:
        try:
            message = await jetstream.get_msg(names.dead_stream, sequence, names.dead_letters, next=True)
        except NotFoundError:  # the last ones went back, or were too old, in the meantime
            return
        sequence = (message.seq or sequence) + 1
        headers = dict(message.headers or {})
        yield DeadLetter(
            sequence=sequence - 1,
            reason=headers.get(REASON, ""),
            detail=headers.get(DETAIL, ""),
            deliveries=_number(headers.get(DELIVERIES)),
            record_id=headers.get(RECORD, ""),
            put_aside_at=float(_number(headers.get(PUT_ASIDE_AT))),
            payload=message.data or b"",
            headers={name: text for name, text in headers.items() if name not in _OWN},
        )


async def give_back(jetstream: JetStreamContext, names: StreamNames, letter: DeadLetter) -> None:
    """Return a dead letter to the stream of records, and take it out of the dead letters.

    It goes by another message id than before, which the stream would take for a duplicate. A crash in between returns it
    twice at most; by its own id the stream knows it again.

    Raises:
        nats.errors.Error: the broker did not take it; it is a dead letter still.
    """
    headers = {
        **letter.headers,
        MESSAGE_ID: f"{names.dead_stream}-{letter.sequence}",
        EARLIER_DELIVERIES: str(letter.deliveries),
    }
    await jetstream.publish(names.records, letter.payload, timeout=_TIMEOUT, headers=headers)
    await jetstream.delete_msg(names.dead_stream, letter.sequence)


def _header_text(text: str) -> str:
    """One line of printable ASCII, as a header can hold it."""
    plain = "".join(sign if " " <= sign <= "~" else "?" for sign in text)
    return plain[:_MAX_DETAIL]


def _number(text: str | None) -> int:
    try:
        return int(float(text or 0))
    except (ValueError, OverflowError):
        return 0
