"""The consumer that all workers share: receives messages, and tells the broker how their deliveries end.

Guarantees:
- A message is requested only when there is room for it, so none waits here while its time with the broker runs out.
- A consumer, a stream or a broker that is gone is asked for again once a second, for as long as it takes.
- What the broker does not confirm is told again, on whatever connection there is. What it never hears of it delivers again.
- A dead letter is in its stream before its message leaves the stream of records.
- A message that a killed broker has lost sight of is put into the stream once more, before its old place is removed.

All of it runs in one event loop.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from ragspan.engine._threads import Deadline
from ragspan.record_json import MAX_JSON
from ragspan.throttled_log import ThrottledLog
from ragspan_nats.connection import BrokerConnection, ensure_consumer, ensure_streams
from ragspan_nats.dead_letters import publish_dead_letter
from ragspan_nats.message import EARLIER_DELIVERIES, copy_of, earlier_deliveries_in, headers_in
from ragspan_nats.settings import BrokerAccess, Stream, WorkerOptions

if TYPE_CHECKING:
    from datetime import datetime

    from nats.aio.client import Client
    from nats.aio.msg import Msg
    from nats.js import JetStreamContext
    from nats.js.api import RawStreamMsg
    from opentelemetry.sdk.trace import ReadableSpan

    from ragspan.telemetry import AnswerHandle

# A request of a worker that died has to be over long before its messages are delivered again: nats-server 2.9 takes a redelivery
# back that finds only requests to which nobody listens, counts it no longer, and delivers another message twice.
_EXPIRY = 1.0  # seconds that a request stays with the broker, at most
_SHARE = 3  # the same as a part of `ack_wait`, at most; and how often the broker hears of a message in that time
_MARGIN = 1.0  # seconds after that, when a request counts as lost
_PAUSE = 1.0  # seconds until the next try
_HAS_A_MESSAGE: Final = "$JS.ACK."  # begins where a message is acknowledged; nobody else may use such subjects
_USUAL_STATUS = frozenset({"404", "408"})  # no messages, or the request's time is over
_CONFIRMATION = 5.0  # seconds; a cluster that stores three copies takes some milliseconds
_RETRY_TIMEOUT = 120.0  # seconds; a stream that was removed confirms nothing any more
_LATER = 30.0  # seconds until a message comes again that could not be put aside

Ending: TypeAlias = Literal["acknowledged", "nacked", "dead_lettered"]
"""As `ragspan.telemetry.semconv` names the results of deliveries."""
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


ACKNOWLEDGE = Verdict(ending="acknowledged")
STOPPED = Verdict(ending="nacked", reason="stopped")


@dataclass(kw_only=True, slots=True, eq=False)
class Delivery:
    """A message in flight."""

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
    size: int = MAX_JSON
    """Bytes of the record's JSON; the largest possible until it is read."""
    task: asyncio.Task[None] | None = None
    handle: AnswerHandle | None = None
    """Of its spans, as long as they are open."""
    spans: list[ReadableSpan] = field(default_factory=list)
    """Those of the answer that are to be exported."""
    is_judging: bool = True
    """It is not scored yet, and may be."""
    verdict: Verdict | None = None
    """How it ends, as the broker is being told."""
    is_orphan: bool = False
    """Its stream is gone, so the broker is told nothing."""

    @classmethod
    def of(cls, message: Msg) -> Delivery:
        metadata = message.metadata
        return cls(
            reply=message.reply,
            sequence=metadata.sequence.stream,
            stored_at=metadata.timestamp.timestamp(),
            number=metadata.num_delivered,
            payload=message.data,
            headers=message.headers or {},
        )

    @property
    def key(self) -> tuple[int, float]:
        """What all deliveries of one message have in common."""
        return self.sequence, self.stored_at

    @property
    def is_nacked(self) -> bool:
        """The broker is being told that another worker may have it."""
        return self.verdict is not None and self.verdict.ending == "nacked"

    @property
    def count(self) -> int:
        """Which delivery of the record this is, those included that came before it was put into the stream once more."""
        return earlier_deliveries_in(self.headers) + self.number


@dataclass(kw_only=True, eq=False)
class Consumer:
    """The workers' consumer, as one worker uses it."""

    access: BrokerAccess
    stream: Stream
    options: WorkerOptions
    take: Callable[[Msg], None]
    """Called with each message."""
    on_new_stream: Callable[[], None]
    """Called when another stream has taken the place of the one that there was."""
    log: ThrottledLog
    is_stopping: bool = False
    """Tell the broker once, and not again."""

    def __post_init__(self) -> None:
        self._connection = BrokerConnection(self.access, name="ragspan worker", log=self.log, prepare=self._prepare)
        self._expiry = min(_EXPIRY, self.options.ack_wait / _SHARE)
        self._inbox = self._request = ""
        self._number = self._left = 0
        self._is_over = asyncio.Event()
        self._stream_made_at: datetime | None = None

    @property
    def is_ready(self) -> bool:
        """Whether messages can come at this moment."""
        return self._connection.ready_client is not None

    @property
    def is_connected(self) -> bool:
        """Whether the broker can be reached at this moment."""
        return self._connection.is_up

    @property
    def longest_request(self) -> float:
        """Seconds for which messages may come that were asked for."""
        return self._expiry + _MARGIN if self.is_ready else 0.0

    async def close(self) -> None:
        """Close the connection."""
        await self._connection.close()

    async def request(self, number: int) -> None:
        """Have so many messages delivered; returns when they have come, after a second, or when the broker cannot be asked."""
        try:
            client = await self._connection.client()
            self._number, self._left = self._number + 1, number
            self._request = f"{self._inbox}.{self._number}"
            self._is_over.clear()
            request = json.dumps({"batch": number, "expires": int(self._expiry * 1e9)}).encode()
            subject = f"$JS.API.CONSUMER.MSG.NEXT.{self.stream.name}.{self.stream.consumer}"
            await client.publish(subject, request, reply=self._request)
            await asyncio.wait_for(self._is_over.wait(), self._expiry + _MARGIN)
        except Exception as error:  # noqa: BLE001 - whatever the broker or the client says, it is asked again
            self._connection.prepare_again()
            self.log.trouble("consumer", "records cannot be fetched: %s", type(error).__name__)
            await asyncio.sleep(_PAUSE)

    async def _hear(self, message: Msg) -> None:
        """A message, or what the broker says of a request; these are told apart whatever headers a message has."""
        if message.reply.startswith(_HAS_A_MESSAGE):
            self._left -= 1
            self.take(message)
        elif message.subject == self._request:
            self._left = 0
            status = (message.headers or {}).get("Status", "")
            if status not in _USUAL_STATUS:
                self._connection.prepare_again()
                self.log.trouble("consumer", "the broker ended a request for records with status %.20s", status)
                await asyncio.sleep(_PAUSE)
        if self._left <= 0:
            self._is_over.set()

    async def _prepare(self, client: Client) -> None:
        """Make the streams and the consumer where they are missing, and listen for messages."""
        jetstream = client.jetstream()
        await ensure_streams(jetstream, self.stream)
        before, self._stream_made_at = self._stream_made_at, (await jetstream.stream_info(self.stream.name)).created
        if before is not None and before != self._stream_made_at:
            self.log.trouble("stream", "stream %s is another one than before", self.stream.name)
            self.on_new_stream()
        await ensure_consumer(jetstream, self.stream, self.options)
        self._inbox = client.new_inbox()
        await client.subscribe(f"{self._inbox}.*", cb=self._hear)

    async def send_heartbeat(self, deliveries: Callable[[], Iterable[Delivery]]) -> float:
        """Tell the broker of what is in flight; the seconds until it wants to hear of that again.

        All workers share one consumer, and the last that was started has set its `ack_wait`.

        Raises:
            nats.errors.Error: the broker is away, or the consumer is gone.
        """
        client = await self._connection.client()
        for delivery in list(deliveries()):
            await client.publish(delivery.reply, b"+WPI")
        consumer = await client.jetstream().consumer_info(self.stream.name, self.stream.consumer)
        ack_wait = min(consumer.config.ack_wait or self.options.ack_wait, self.options.ack_wait)
        return ack_wait / _SHARE

    async def end(self, delivery: Delivery, verdict: Verdict) -> Verdict:
        """Tell the broker how a delivery ends, until it confirms that; what has become of it in fact."""
        if verdict.ending == "dead_lettered" and not await self._dead_letter(delivery, verdict):
            verdict = Verdict(ending="nacked", reason="not_dead_lettered", delay=_LATER)
        if verdict.ending != "nacked":
            said = b"+ACK"
        elif verdict.delay:
            said = b"-NAK " + json.dumps({"delay": int(verdict.delay * 1e9)}).encode()
        else:
            said = b"-NAK"
        deadline = Deadline(_RETRY_TIMEOUT)
        while not await self._is_confirmed(delivery, said):
            if self.is_stopping or not deadline.remaining:
                return Verdict(ending="nacked", reason="not_confirmed")
            await asyncio.sleep(_PAUSE)
        return verdict

    async def _dead_letter(self, delivery: Delivery, verdict: Verdict) -> bool:
        from nats.js.errors import NoStreamResponseError

        try:
            client = await self._connection.client()
            try:
                await publish_dead_letter(client, self.stream, delivery, verdict)
            except NoStreamResponseError:  # somebody has removed it since this worker started
                await ensure_streams(client.jetstream(), self.stream)
                await publish_dead_letter(client, self.stream, delivery, verdict)
        except Exception as error:  # noqa: BLE001 - the message stays in the stream of records
            self.log.trouble("dead_letters", "a record could not be put aside: %s", type(error).__name__)
            return False
        return True

    async def _is_confirmed(self, delivery: Delivery, what: bytes) -> bool:
        try:
            await (await self._connection.client()).request(delivery.reply, what, timeout=_CONFIRMATION)
        except Exception as error:  # noqa: BLE001 - told again
            self.log.trouble("end", "the end of a delivery could not be told: %s", type(error).__name__)
            return False
        return True

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

        jetstream = (await self._connection.client()).jetstream()
        consumer = await jetstream.consumer_info(self.stream.name, self.stream.consumer)
        stream = await jetstream.stream_info(self.stream.name)
        is_ours = stream.config.retention == RetentionPolicy.WORK_QUEUE  # else its owner made it otherwise
        if consumer.num_ack_pending or consumer.delivered is None or not is_ours:
            return
        sequence, last = stream.state.first_seq, consumer.delivered.stream_seq
        while stream.state.messages and sequence <= last:
            try:
                message = await jetstream.get_msg(self.stream.name, sequence, self.stream.records, next=True)
            except NotFoundError:
                return
            sequence = message.seq or sequence
            if sequence <= last:
                self.log.trouble("orphans", "the broker had lost sight of a record, which is delivered again")
                await self._deliver_again(jetstream, sequence, message)
            sequence += 1

    async def _deliver_again(self, jetstream: JetStreamContext, sequence: int, message: RawStreamMsg) -> None:
        headers = headers_in(message)
        own = {EARLIER_DELIVERIES: str(earlier_deliveries_in(headers) + 1)}
        copy = copy_of(message.data or b"", headers, place=f"{self.stream.name}-{sequence}", own=own)
        if copy.size > self._connection.max_payload:  # nothing that our sink has published
            return
        await jetstream.publish(self.stream.records, copy.payload, headers=dict(copy.headers))
        await jetstream.delete_msg(self.stream.name, sequence)
