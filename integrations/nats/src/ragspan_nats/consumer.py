"""The consumer that all workers share, as one worker uses it: it receives messages and tells the broker how their deliveries end.

Messages are requested only when there is room for them, so none waits here while its `ack_wait` runs out. Not by `fetch` of nats-py:
that keeps the first messages back until the last one has come.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from ragspan.engine.threads import Deadline
from ragspan.records import MAX_JSON
from ragspan.throttled_log import ThrottledLog
from ragspan_nats.connection import BrokerConnection, ensure_streams, error_text
from ragspan_nats.message import ENCODING, MESSAGE_ID, BrokerMessage
from ragspan_nats.settings import BrokerAccess, Stream, WorkerOptions

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.aio.msg import Msg
    from opentelemetry.sdk.trace import ReadableSpan

    from ragspan.telemetry import AnswerHandle

# The request of a worker that died must end long before its messages are delivered again. If nats-server 2.9 finds only requests
# to which nobody listens, it takes a redelivery back, no longer counts it, and delivers another message twice.
_EXPIRY = 1.0  # seconds that a request stays with the broker, at most
_SHARE = 3  # the same as a part of `ack_wait`, at most; also the number of heartbeats in that time
_MARGIN = 1.0  # seconds after that, when a request counts as lost
LONGEST_REQUEST = _EXPIRY + _MARGIN
"""Seconds for which messages of a request may still come."""
_PAUSE = 1.0  # seconds between attempts
_HAS_A_MESSAGE: Final = "$JS.ACK."  # the subject for acknowledgements begins so; nobody else may use such subjects
_USUAL_STATUS = frozenset({"404", "408"})  # no messages, or the request has expired
_HEARTBEAT = 5.0  # seconds between two heartbeats, at most
_CONFIRMATION = 5.0  # seconds; a cluster that stores three copies takes some milliseconds
_STORED = 10.0  # seconds for a dead letter
_RETRY_TIMEOUT = 120.0  # seconds; a stream that was deleted confirms nothing
_MAX_PENDING = 10_000  # records that all workers together may have in flight
_MAX_TEXT = 300  # characters of a header
_BACK_OFF = (5.0, 30.0, 120.0, 600.0)  # seconds to the next delivery, after the first, the second and so on

Ending: TypeAlias = Literal["acknowledged", "nacked", "dead_lettered"]
"""The results of deliveries in `ragspan.telemetry.semconv`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Disposition:
    """How a delivery ends, and why."""

    ending: Ending
    reason: str | None = None
    """Why it was not acknowledged, as `docs/fleet.md` explains."""
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
    started: int = 0
    """How many spans were started."""
    is_judging: bool = True
    """Whether it is being scored or waits for that."""
    disposition: Disposition | None = None
    """How it ends; set before the broker hears of it."""

    @property
    def delay(self) -> float:
        """Seconds until it comes again if it is nacked."""
        return _BACK_OFF[min(self.number, len(_BACK_OFF)) - 1]

    @property
    def is_nacked(self) -> bool:
        """Whether it is given back, so that another worker may have it."""
        return self.disposition is not None and self.disposition.ending == "nacked"


class Consumer:
    """The workers' consumer, as one worker uses it; `take` is called with each message."""

    def __init__(
        self,
        access: BrokerAccess,
        stream: Stream,
        options: WorkerOptions,
        *,
        take: Callable[[Delivery], None],
        log: ThrottledLog,
    ) -> None:
        self._stream, self._ack_wait = stream, options.ack_wait
        self._take, self._log = take, log
        self._connection = BrokerConnection(access, name="ragspan worker", log=log, prepare=self._prepare)
        self._expiry = min(_EXPIRY, self._ack_wait / _SHARE)
        self._listening: Client | None = None
        self._inbox = self._request = ""
        self._number = self._left = 0
        self._is_over = asyncio.Event()
        self.close = self._connection.close

    @property
    def is_ready(self) -> bool:
        """Whether messages can come now."""
        return self._connection.ready_client is not None

    async def _prepare(self, client: Client) -> None:
        await ensure_streams(client.jetstream(), self._stream)
        await ensure_consumer(client, self._stream, self._ack_wait)
        if client is not self._listening:  # nats-py subscribes again by itself after it has reconnected
            self._inbox = client.new_inbox()
            await client.subscribe(f"{self._inbox}.*", cb=self._receive)
            self._listening = client

    async def request(self, number: int) -> None:
        """Request `number` messages. Returns when they have come, after a second, or when the broker cannot be asked."""
        try:
            client = await self._connection.client()
            self._number, self._left = self._number + 1, number
            self._request = f"{self._inbox}.{self._number}"
            self._is_over.clear()
            request = json.dumps({"batch": number, "expires": int(self._expiry * 1e9)}).encode()
            subject = f"$JS.API.CONSUMER.MSG.NEXT.{self._stream.name}.{self._stream.consumer}"
            await client.publish(subject, request, reply=self._request)
            await asyncio.wait_for(self._is_over.wait(), self._expiry + _MARGIN)
        except Exception as error:  # noqa: BLE001 - whatever the broker or the client says, it is asked again
            self._connection.prepare_again()
            self._log.report("consumer", "records cannot be fetched: %s", error_text(error))
            await asyncio.sleep(_PAUSE)

    async def _receive(self, message: Msg) -> None:
        """Take a message, or the broker's status of a request. The subject tells them apart; a message may have any headers."""
        headers = message.headers or {}
        if message.reply.startswith(_HAS_A_MESSAGE):
            self._left -= 1
            sequence, number = message.metadata.sequence.stream, message.metadata.num_delivered
            reply, payload = message.reply, message.data
            self._take(Delivery(reply=reply, sequence=sequence, number=number, payload=payload, headers=headers))
        elif message.subject == self._request:
            self._left = 0
            status = headers.get("Status", "")
            if status not in _USUAL_STATUS:
                self._connection.prepare_again()
                self._log.report("consumer", "the broker ended a request for records with status %.20s", status)
                await asyncio.sleep(_PAUSE)
        if self._left <= 0:
            self._is_over.set()

    async def send_heartbeats(self, in_flight: Collection[Delivery]) -> None:
        """Keep the broker from giving messages in flight to other workers, as long as this runs.

        A message that is given back gets no heartbeat: it would wait for `ack_wait` in place of its delay.
        """
        pause = min(self._ack_wait / _SHARE, _HEARTBEAT)
        while True:
            await asyncio.sleep(pause)
            try:
                for delivery in list(in_flight):
                    if (client := self._connection.ready_client) is not None and not delivery.is_nacked:
                        await asyncio.wait_for(client.publish(delivery.reply, b"+WPI"), pause)
            except Exception as error:  # noqa: BLE001 - the connection is being lost
                self._log.report("heartbeat", "the broker could not be told what is in flight: %s", error_text(error))

    async def end(self, delivery: Delivery, disposition: Disposition) -> Disposition:
        """Tell the broker how a delivery ends, until it confirms that; how it has really ended."""
        if disposition.ending == "dead_lettered":
            try:  # it is stored before its message leaves the stream of records
                await self._store_dead_letter(delivery, disposition)
            except Exception as error:  # noqa: BLE001 - the message stays in the stream of records
                self._log.report("dead_letters", "a record could not be put aside: %s", error_text(error))
                disposition = Disposition(ending="nacked", reason="not_dead_lettered")
        said = b"+ACK"
        if disposition.ending == "nacked":
            said = b"-NAK" if disposition is STOPPED else b'-NAK {"delay": %d}' % (delivery.delay * 1e9)
        deadline = Deadline(_RETRY_TIMEOUT)
        while deadline.remaining:
            try:
                client = await self._connection.client()
                await client.request(delivery.reply, said, timeout=_CONFIRMATION)
            except Exception as error:  # noqa: BLE001, PERF203 - it is sent again
                self._log.report("end", "the broker was not reached at the end of a delivery: %s", error_text(error))
                await asyncio.sleep(_PAUSE)
            else:
                return disposition
        return Disposition(ending="nacked", reason="not_confirmed")

    async def _store_dead_letter(self, delivery: Delivery, disposition: Disposition) -> None:
        client = await self._connection.client()
        jetstream = client.jetstream(timeout=_STORED)
        await ensure_streams(jetstream, self._stream)  # somebody may have deleted it
        # By this id the stream knows what another worker puts aside as well. A stream that is made anew counts from 1 again, so
        # the id has a digest of the message, too.
        digest = hashlib.blake2b(delivery.payload, digest_size=8).hexdigest()
        headers = {
            MESSAGE_ID: f"{self._stream.name}-{delivery.sequence}-{digest}",
            "Ragspan-Record": delivery.headers.get(MESSAGE_ID, ""),
            "Ragspan-Reason": disposition.reason or "",
            "Ragspan-Detail": disposition.detail,
            "Ragspan-Deliveries": str(delivery.number),
            **({ENCODING: delivery.headers[ENCODING]} if ENCODING in delivery.headers else {}),
        }
        for name, text in headers.items():  # one line of printable ASCII
            headers[name] = "".join(sign if " " <= sign <= "~" else "?" for sign in text[:_MAX_TEXT])
        payload = delivery.payload
        if BrokerMessage(payload=payload, headers=headers).size > client.max_payload:
            headers["Ragspan-Detail"] += " (the message itself had no room)"
            payload = b""
        await jetstream.publish(self._stream.dead_letters, payload, headers=headers)


async def ensure_consumer(client: Client, stream: Stream, ack_wait: float) -> None:
    """Make the workers' consumer, or change it to these settings; raises errors of NATS.

    It has no limit of deliveries: it would leave the message in the stream, out of reach. The workers count them.
    """
    from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy

    config = ConsumerConfig(
        durable_name=stream.consumer,
        filter_subject=stream.records,  # a stream that somebody else made may have other subjects
        deliver_policy=DeliverPolicy.ALL,
        ack_policy=AckPolicy.EXPLICIT,
        ack_wait=ack_wait,
        max_deliver=-1,
        max_ack_pending=_MAX_PENDING,
    )
    await client.jetstream().add_consumer(stream.name, config)
