"""Whether a worker takes the records of a stream, as far as the broker can tell; for `ragspan doctor`.

A worker that has room has a request for records at the broker all the time. One that has no room has records in flight.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ragspan.engine.processing import Deadline
from ragspan.throttled_log import ThrottledLog
from ragspan_nats.connection import BrokerConnection, error_text
from ragspan_nats.consumer import LONGEST_REQUEST
from ragspan_nats.settings import BrokerAccess, Stream

if TYPE_CHECKING:
    from nats.js import JetStreamContext
    from nats.js.api import ConsumerInfo

_LOOK = 0.2  # seconds between two looks at the consumer


async def look_for_workers(access: BrokerAccess, stream: Stream, timeout: float) -> tuple[bool | None, str]:
    """Whether a worker takes records, None where that is not known, and what was seen, in words.

    Watches for two seconds, so that a request of a worker that has just died is over, or for `timeout` seconds if that is less.
    """
    from nats.js.errors import NotFoundError

    connection = BrokerConnection(access, name="ragspan doctor", log=ThrottledLog())
    deadline = Deadline(timeout)
    try:
        client = await asyncio.wait_for(connection.client(), deadline.remaining)
        jetstream = client.jetstream(timeout=max(deadline.remaining / 2, _LOOK))
        return await _watch(jetstream, stream, Deadline(min(LONGEST_REQUEST, deadline.remaining / 2)))
    except NotFoundError:
        return False, f"no worker has ever asked for the records of the stream {stream.name}"
    except Exception as error:  # noqa: BLE001 - no permission shows as silence; whatever it is, it is said
        words = (
            "the broker does not answer"
            if isinstance(error, TimeoutError | asyncio.TimeoutError)
            else error_text(error)
        )
        return None, f"whether a worker takes the records of the stream {stream.name} is not known: {words}"
    finally:
        await connection.close()


async def _watch(jetstream: JetStreamContext, stream: Stream, deadline: Deadline) -> tuple[bool | None, str]:
    first = latest = await jetstream.consumer_info(stream.name, stream.consumer)
    while deadline.remaining:
        await asyncio.sleep(_LOOK)
        latest = await jetstream.consumer_info(stream.name, stream.consumer)
        if _deliveries(latest) > _deliveries(first):
            break
    waiting, in_flight = latest.num_pending or 0, latest.num_ack_pending or 0
    counts = f"{waiting} wait in the stream {stream.name}, {in_flight} are in flight"
    if latest.num_waiting or _deliveries(latest) > _deliveries(first):
        return True, f"a worker takes records: {counts}"
    if in_flight:
        return (
            None,
            f"no worker asks for records now: {counts}; workers are busy, their judge is away, or they have died",
        )
    return False, f"no worker takes records: {counts}"


def _deliveries(info: ConsumerInfo) -> int:
    return 0 if info.delivered is None else info.delivered.consumer_seq
