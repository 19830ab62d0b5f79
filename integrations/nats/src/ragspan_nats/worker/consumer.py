"""The consumer that all workers share: receives messages, and tells the broker how their deliveries end.

Guarantees:
- A message is requested only when there is room for it, so none waits here while its time with the broker runs out.
- A consumer, a stream or a broker that is gone is asked for again once a second, for as long as it takes.
- A reply of the broker is told apart from a message whatever headers the message has.
- What the broker does not confirm is told again, on whatever connection there is. What it never hears of it delivers again.
- A dead letter is in its stream before its message leaves the stream of records.
- A message that a killed broker has lost sight of is put into the stream once more, before its old place is removed.

All of it runs in one event loop.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from ragspan.throttled_log import ThrottledLog
from ragspan_nats.connection import BrokerConnection
from ragspan_nats.dead_letters.letters import publish_dead_letter
from ragspan_nats.message import MESSAGE_ID, fitting, headers_of, max_payload_of
from ragspan_nats.streams import StreamLimits, StreamNames, ensure_consumer, ensure_streams
from ragspan_nats.worker.delivery import EARLIER_DELIVERIES, Arrival, Verdict, earlier_deliveries_in
from ragspan_nats.worker.options import WorkerOptions

if TYPE_CHECKING:
    from datetime import datetime

    from nats.aio.client import Client
    from nats.aio.msg import Msg
    from nats.js import JetStreamContext
    from nats.js.api import RawStreamMsg

# A request of a worker that died has to be over long before its messages are delivered again: nats-server 2.9 takes a redelivery
# back that finds only requests to which nobody listens, counts it no longer, and delivers another message twice.
_EXPIRY = 1.0  # seconds that a request stays with the broker, at most
_SHARE = 3  # the same as a part of `ack_wait`, at most; and how often the broker hears of a message in that time
_MARGIN = 1.0  # seconds after that, when a request counts as lost
_PAUSE = 1.0  # seconds until the next try
_HAS_A_MESSAGE: Final = "$JS.ACK."  # begins where a message is acknowledged; nobody else may use such subjects
_USUAL_STATUS = frozenset({"404", "408"})  # no messages, or the request's time is over
_CONFIRMATION = 5.0  # seconds that the broker has for it
_RETRY_TIMEOUT = 120.0  # seconds; a stream that was removed confirms nothing any more
_LATER = 30.0  # seconds until a message comes again that could not be put aside


class Consumer:
    """The workers' consumer, as one worker uses it.

    Args:
        connection: to the broker.
        names: of streams and consumer.
        limits: of the streams, where they have to be made.
        options: of the worker.
        on_new_stream: called when another stream has taken the place of the one that there was.
        log: told of trouble.
    """

    def __init__(
        self,
        connection: BrokerConnection,
        names: StreamNames,
        *,
        limits: StreamLimits,
        options: WorkerOptions,
        on_new_stream: Callable[[], None],
        log: ThrottledLog,
    ) -> None:
        self._connection = connection
        self._names = names
        self._limits = limits
        self._options = options
        self._expiry = min(_EXPIRY, options.ack_wait / _SHARE)
        self._on_new_stream = on_new_stream
        self._log = log
        self._preparing = asyncio.Lock()
        self._prepared_for: Client | None = None
        self._stream_made_at: datetime | None = None
        self._requests = 0
        self.is_stopping = False
        """Tell the broker once, and not again."""

    @property
    def is_ready(self) -> bool:
        """Whether messages can come at this moment."""
        return self._prepared_for is not None and self._connection.is_up

    @property
    def has_requests(self) -> bool:
        """Whether a message may still come that was asked for."""
        return self._requests > 0 and self._connection.is_up

    async def receive(self) -> Msg | None:
        """The next message; None if none came within a second, or the broker cannot be asked."""
        self._requests += 1
        try:
            return await self._request(await self._prepared_client())
        except Exception as error:  # noqa: BLE001 - whatever the broker or the client says, it is asked again
            self._prepared_for = None
            self._log.trouble("consumer", "records cannot be fetched: %s", type(error).__name__)
            await asyncio.sleep(_PAUSE)
            return None
        finally:
            self._requests -= 1

    async def _request(self, client: Client) -> Msg | None:
        subject = f"$JS.API.CONSUMER.MSG.NEXT.{self._names.stream}.{self._names.consumer}"
        request = json.dumps({"batch": 1, "expires": int(self._expiry * 1e9)}).encode()
        inbox = client.new_inbox()
        subscription = await client.subscribe(inbox)
        try:
            await client.publish(subject, request, reply=inbox)
            reply = await subscription.next_msg(self._expiry + _MARGIN)
        finally:
            with suppress(Exception):  # the connection was lost
                await subscription.unsubscribe()
        if reply.reply.startswith(_HAS_A_MESSAGE):
            return reply
        status = (reply.headers or {}).get("Status", "")
        if status not in _USUAL_STATUS:
            self._prepared_for = None
            self._log.trouble("consumer", "the broker ended a request for records with status %.20s", status)
            await asyncio.sleep(_PAUSE)
        return None

    async def _prepared_client(self) -> Client:
        """The client, with stream and consumer there."""
        client = await self._connection.client()
        async with self._preparing:
            if client is not self._prepared_for:
                jetstream = client.jetstream()
                await ensure_streams(jetstream, self._names, self._limits)
                self._look_at_stream((await jetstream.stream_info(self._names.stream)).created)
                await ensure_consumer(
                    jetstream,
                    self._names,
                    ack_wait=self._options.ack_wait,
                    max_ack_pending=self._options.max_ack_pending,
                )
                self._prepared_for = client
        return client

    def _look_at_stream(self, made_at: datetime | None) -> None:
        before, self._stream_made_at = self._stream_made_at, made_at
        if before is not None and before != made_at:
            self._log.trouble("stream", "stream %s is another one than before", self._names.stream)
            self._on_new_stream()

    async def send_heartbeat(self, arrivals: Callable[[], list[Arrival]]) -> float:
        """Tell the broker of what is in flight; the seconds until it wants to hear of that again.

        All workers share one consumer, and the last that was started has set its `ack_wait`.

        Raises:
            nats.errors.Error: the broker is away, or the consumer is gone.
        """
        client = await self._connection.client()
        for arrival in arrivals():
            await client.publish(arrival.reply, b"+WPI")
        consumer = await client.jetstream().consumer_info(self._names.stream, self._names.consumer)
        ack_wait = min(consumer.config.ack_wait or self._options.ack_wait, self._options.ack_wait)
        return ack_wait / _SHARE

    async def end(self, arrival: Arrival, verdict: Verdict) -> Verdict:
        """Tell the broker how a delivery ends; what has become of it in fact."""
        if verdict.ending == "dead_letter" and not await self._dead_letter(arrival, verdict):
            verdict = Verdict(ending="nak", reason="not_dead_lettered", delay=_LATER)
        if verdict.ending != "nak":
            said = b"+ACK"
        elif verdict.delay:
            said = b"-NAK " + json.dumps({"delay": int(verdict.delay * 1e9)}).encode()
        else:
            said = b"-NAK"
        is_confirmed = await self._tell(arrival, said)
        return verdict if is_confirmed else Verdict(ending="nak", reason="not_confirmed")

    async def _dead_letter(self, arrival: Arrival, verdict: Verdict) -> bool:
        from nats.js.errors import NoStreamResponseError

        async def publish() -> None:
            reason, detail = verdict.reason or "", verdict.detail
            await publish_dead_letter(
                jetstream, self._names, arrival, reason=reason, detail=detail, timeout=_CONFIRMATION
            )

        try:
            jetstream = await self._connection.jetstream()
            try:
                await publish()
            except NoStreamResponseError:  # somebody has removed it since this worker started
                await ensure_streams(jetstream, self._names, self._limits)
                await publish()
        except Exception as error:  # noqa: BLE001 - the message stays in the stream of records
            self._log.trouble("dead_letters", "a record could not be put aside: %s", type(error).__name__)
            return False
        return True

    async def _tell(self, arrival: Arrival, what: bytes) -> bool:
        """Whether the broker confirmed it."""
        deadline = asyncio.get_running_loop().time() + _RETRY_TIMEOUT
        while True:
            try:
                client = await self._connection.client()
                await client.request(arrival.reply, what, timeout=_CONFIRMATION)
            except Exception as error:  # noqa: BLE001 - told again
                self._log.trouble("end", "the end of a delivery could not be told: %s", type(error).__name__)
            else:
                return True
            if self.is_stopping or asyncio.get_running_loop().time() > deadline:
                return False
            await asyncio.sleep(_PAUSE)

    async def recover_orphans(self) -> None:
        """Put messages into the stream once more that the consumer has delivered and waits for no longer, but which are there still.

        A broker that is killed may have noted that a message was acknowledged, and not yet that it is gone; or it may have
        lost the note that the message was given back. Nobody can tell which, and nobody would get such a message again.
        Only a moment at which the consumer waits for no acknowledgement shows them.

        Raises:
            nats.errors.Error: the broker is away, or does not let us.
        """
        from nats.js.api import RetentionPolicy
        from nats.js.errors import NotFoundError

        jetstream = await self._connection.jetstream()
        consumer = await jetstream.consumer_info(self._names.stream, self._names.consumer)
        stream = await jetstream.stream_info(self._names.stream)
        if consumer.num_ack_pending or consumer.delivered is None:
            return
        if stream.config.retention != RetentionPolicy.WORK_QUEUE:  # its owner made it otherwise
            return
        sequence, last = stream.state.first_seq, consumer.delivered.stream_seq
        while stream.state.messages and sequence <= last:
            try:
                message = await jetstream.get_msg(self._names.stream, sequence, self._names.records, next=True)
            except NotFoundError:
                return
            sequence = message.seq or sequence
            if sequence <= last:
                self._log.trouble("orphans", "the broker had lost sight of a record, which is delivered again")
                await self._deliver_again(jetstream, sequence, message)
            sequence += 1

    async def _deliver_again(self, jetstream: JetStreamContext, sequence: int, message: RawStreamMsg) -> None:
        payload, before = message.data or b"", headers_of(message)
        own = {
            # Workers that do so at the same time publish it once.
            MESSAGE_ID: f"{self._names.stream}-{sequence}-{blake2b(payload, digest_size=8).hexdigest()}",
            EARLIER_DELIVERIES: str(earlier_deliveries_in(before) + 1),
        }
        headers = fitting(before, own, payload, max_payload_of(jetstream))
        if headers is None:  # nothing that our sink has published; its own headers would have had room
            return
        await jetstream.publish(self._names.records, payload, headers=headers)
        await jetstream.delete_msg(self._names.stream, sequence)
