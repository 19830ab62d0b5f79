"""Dead letters on the broker: the message as it was, with headers that say why and when it was put aside.

Whoever may publish may have given a message any payload and any headers, so what is read here is checked, and what cannot be
published again is left out: a message that could not be put aside would come back to the workers for ever.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING

from ragspan_nats.message import MESSAGE_ID, fitting, header_text, headers_of, max_payload_of
from ragspan_nats.streams import StreamNames
from ragspan_nats.worker.delivery import EARLIER_DELIVERIES, Arrival

if TYPE_CHECKING:
    from nats.js import JetStreamContext
    from nats.js.api import RawStreamMsg

REASON = "Ragspan-Reason"
DETAIL = "Ragspan-Detail"
DELIVERIES = "Ragspan-Deliveries"
RECORD = "Ragspan-Record"
DEAD_LETTERED_AT = "Ragspan-Dead-Lettered-At"
LEFT_OUT = "Ragspan-Left-Out"
"""Bytes of a payload that had no room beside these headers."""
_OWN = frozenset({REASON, DETAIL, DELIVERIES, RECORD, DEAD_LETTERED_AT, LEFT_OUT, MESSAGE_ID})
_TIMEOUT = 10.0  # seconds
_LAST_MOMENT = 253_402_300_799  # Unix seconds of the end of the year 9999


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
    dead_lettered_at: float
    """Unix seconds; 0 if that is not known."""
    payload: bytes
    is_whole: bool
    """The payload is there; it had no room beside the headers of a dead letter otherwise."""
    headers: Mapping[str, str]
    """Those of the message as it was published."""


async def publish_dead_letter(
    jetstream: JetStreamContext, names: StreamNames, arrival: Arrival, *, reason: str, detail: str, timeout: float
) -> None:
    """Put a message among the dead letters.

    Done twice, because a worker died in between, it is there once: for as long as the broker looks for duplicates.

    Raises:
        nats.errors.Error: the broker did not take it.
    """
    own = {
        # The digest, because a stream that is made anew counts from 1 again.
        MESSAGE_ID: f"{names.stream}-{arrival.sequence}-{blake2b(arrival.payload, digest_size=8).hexdigest()}",
        RECORD: header_text(arrival.headers.get(MESSAGE_ID, "")),
        REASON: header_text(reason),
        DETAIL: header_text(detail),
        DELIVERIES: str(arrival.earlier + arrival.number),
        DEAD_LETTERED_AT: f"{time.time():.3f}",
    }
    payload = arrival.payload
    headers = fitting(arrival.headers, own, payload, max_payload_of(jetstream))
    if headers is None:
        payload, headers = b"", {**own, LEFT_OUT: str(len(arrival.payload))}
    await jetstream.publish(names.dead_letters, payload, timeout=timeout, headers=headers)


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
        found = message.seq or sequence
        if found > state.last_seq:  # put aside since
            return
        yield _letter(found, message)
        sequence = found + 1


async def dead_letter(jetstream: JetStreamContext, names: StreamNames, sequence: int) -> DeadLetter | None:
    """The one with this number; None if there is none.

    Raises:
        nats.js.errors.NotFoundError: there is no stream of dead letters.
        nats.errors.Error: the broker does not let us, or cannot.
    """
    from nats.js.errors import NotFoundError

    try:
        return _letter(sequence, await jetstream.get_msg(names.dead_stream, sequence))
    except NotFoundError:
        await jetstream.stream_info(names.dead_stream)
        return None


async def return_dead_letter(jetstream: JetStreamContext, names: StreamNames, letter: DeadLetter) -> bool:
    """Return a dead letter to the stream of records, and take it out of the dead letters.

    It goes by another message id than before, which the stream would take for a duplicate. A crash in between returns it
    twice at most; by its own id the stream knows it again.

    Returns:
        False, and it is a dead letter still, if it is not whole, or larger than the broker allows.

    Raises:
        nats.errors.Error: the broker did not take it; it is a dead letter still.
    """
    from nats.js.errors import APIError

    own = {
        MESSAGE_ID: f"{names.dead_stream}-{letter.sequence}-{blake2b(letter.payload, digest_size=8).hexdigest()}",
        EARLIER_DELIVERIES: str(letter.deliveries),
    }
    headers = fitting(letter.headers, own, letter.payload, max_payload_of(jetstream))
    if headers is None or not letter.is_whole:
        return False
    await jetstream.publish(names.records, letter.payload, timeout=_TIMEOUT, headers=headers)
    try:
        await jetstream.delete_msg(names.dead_stream, letter.sequence)
    except APIError:
        if await dead_letter(jetstream, names, letter.sequence) is not None:
            raise
        # Somebody else has returned it at the same time, to the same effect.
    return True


def _letter(sequence: int, message: RawStreamMsg) -> DeadLetter:
    headers = headers_of(message)
    return DeadLetter(
        sequence=sequence,
        reason=headers.get(REASON, ""),
        detail=headers.get(DETAIL, ""),
        deliveries=int(_number(headers.get(DELIVERIES))),
        record_id=headers.get(RECORD, ""),
        dead_lettered_at=_number(headers.get(DEAD_LETTERED_AT)),
        payload=message.data or b"",
        is_whole=LEFT_OUT not in headers,
        headers={name: text for name, text in headers.items() if name not in _OWN},
    )


def _number(text: str | None) -> float:
    """From 0 to the largest that can be a moment."""
    try:
        number = float(text or 0)
    except ValueError:
        return 0.0
    return min(max(number, 0.0), float(_LAST_MOMENT)) if number == number else 0.0  # noqa: PLR0124 - not a number
