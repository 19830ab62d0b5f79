"""What a sink does with each capture: it becomes a record and a message, which is published until the stream has it.

Guarantees:
- Each time the connection is made, the streams are there or are made, if the broker lets us and answers within two seconds. If
  it does not, records are published all the same: who may publish need not be allowed to make streams.
- A message that is published again has the same id, by which the stream knows it.
- Not more than a megabyte, and a message, waits in nats-py for a connection that takes nothing.
- Between two records the interpreter is free for a moment, so that a request waits for the work on one at most. (The
  interpreter's own switch comes every five milliseconds, far too late for a request that takes thirty.)

All of it runs in one event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from ragspan.backoff import Backoff
from ragspan.engine._record_queue import Item, RecordQueue
from ragspan.engine._redaction import Redaction
from ragspan.engine._threads import Deadline, call_guarded
from ragspan.engine.stats import Dropped, DropReason
from ragspan.exceptions import RecordError
from ragspan.redaction import Redact
from ragspan.telemetry.content import ContentPolicy
from ragspan.throttled_log import ThrottledLog
from ragspan_nats.message import Message, message_of
from ragspan_nats.settings import BrokerAccess, Stream

if TYPE_CHECKING:  # what it loads is needed once something is submitted
    from nats.aio.client import Client

    from ragspan.records import RagRecord
    from ragspan_nats.connection import BrokerConnection

_REDACTION_TIMEOUT = 60.0  # seconds for one record
_BREATH = 50e-6  # seconds; less, and a request's thread may not be awake before we go on
_CLOSE = 1e-3  # seconds from one record to the next within which they count as one stretch of work
_LOOK_TIMEOUT = 2.0  # seconds for making the streams
_MAX_UNSENT = 1024 * 1024  # bytes
_UNSENT_TIMEOUT, _LOOK_AGAIN = 5.0, 0.05  # seconds
_REPLY_TIMEOUT = 5.0  # seconds; a cluster that stores three copies takes some milliseconds
_NO_ROOM = frozenset({10002, 10023, 10028, 10047, 10077})  # account, server, memory, store, stream
_TOO_LARGE = frozenset({10054, 10097})  # the message for the stream, or its headers for any
_FIRST_PAUSE, _LONGEST_PAUSE = 0.25, 10.0  # seconds

Answer: TypeAlias = Literal["stored", "stream_full", "too_large", "no_stream", "broker_unavailable"]
"""What the stream says to a message. `broker_unavailable` is anything that may change."""


@dataclass(kw_only=True, eq=False)
class Publishing:
    """The work of a sink."""

    access: BrokerAccess
    stream: Stream
    queue: RecordQueue
    """Counts the records."""
    log: ThrottledLog
    name: str
    """What the broker's own statistics call us."""
    redact: Redact | None
    compress_above: int
    """Bytes of JSON."""
    retry_timeout: float
    """Seconds for a record that the stream does not take."""

    def __post_init__(self) -> None:
        self._redaction = Redaction(self.redact, timeout=_REDACTION_TIMEOUT, account=self.queue, log=self.log)
        self._connection: BrokerConnection | None = None
        self._backoff = Backoff(first=_FIRST_PAUSE, longest=_LONGEST_PAUSE)
        self._last_refusal: DropReason = "broker_unavailable"
        self._worked_until = 0.0
        self._shows_texts = ContentPolicy().allows("spans")
        self._keeper: asyncio.Task[None] | None = None

    async def score(self, item: Item) -> None:
        """Publish one item."""
        limit = Deadline(self.retry_timeout)
        connection = self._connection = self._connection or self._new_connection()
        if await self._client(connection, limit) is None:
            self.queue.end(item, Dropped(reason=self._obstacle(connection)))
            return
        if time.monotonic() - self._worked_until < _CLOSE:
            time.sleep(_BREATH)  # noqa: ASYNC251 - in this event loop there is nothing that could run meanwhile
        record = await self._redaction.record_of(item)
        message = None if record is None else self._message_of(item, record)
        self._worked_until = time.monotonic()
        if message is None:
            return
        reason = await self._publish(connection, message, limit)
        if reason is None:
            self.queue.end(item)
        else:
            self.queue.end(item, Dropped(reason=reason))

    def stop(self, deadline: Deadline) -> None:  # noqa: ARG002 - nothing here takes time
        self._redaction.close()

    def flush(self, deadline: Deadline) -> bool:  # noqa: ARG002 - likewise
        """True: what has ended is in the stream."""
        return True

    def worker_ended(self) -> None:
        """The keeper closes the connection when it is cancelled. A successor makes a connection of its own."""
        self._connection = None

    def _message_of(self, item: Item, record: RagRecord) -> Message | None:
        """The record as a message; None if the item has ended without one."""
        # Prompts and the like, which only spans show, go along where the application's spans may have them.
        record = record if self._shows_texts else record.without_step_texts()
        message, error = call_guarded(lambda: message_of(record, compress_above=self.compress_above))
        if isinstance(error, RecordError):
            self.queue.end(item, Dropped(reason="too_large"))
        elif error is not None:
            self.queue.end(item, Dropped(reason="capture_error"))
            self.log.trouble("capture_error", "a record could not be written: %s", type(error).__name__)
        return message if self.queue.has_in_work(item) else None

    def _obstacle(self, connection: BrokerConnection) -> DropReason:
        """Why a record is given up that could not be published in time."""
        return "broker_unavailable" if connection.ready_client is None else self._last_refusal

    async def _client(self, connection: BrokerConnection, limit: Deadline) -> Client | None:
        """What publishes, once it is there and nothing rests; None if that does not come in time."""
        while limit.remaining:
            if pause := self._backoff.remaining:
                await asyncio.sleep(min(pause, limit.remaining))
            elif (client := connection.ready_client) is not None:
                return client
            else:
                with contextlib.suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(connection.client(), limit.remaining)
        return None

    async def _publish(self, connection: BrokerConnection, message: Message, limit: Deadline) -> DropReason | None:
        """None once the stream has the message; else why it was given up."""
        while (client := await self._client(connection, limit)) is not None:
            answer = await self._try(connection, client, message)
            if answer == "stored":
                self._backoff.succeeded()
                return None
            if answer == "too_large":
                self.log.trouble("too_large", "a record is larger than the broker takes: %d bytes", message.size)
                return answer
            if answer == "no_stream":
                connection.prepare_again()
            self._last_refusal = "stream_full" if answer == "stream_full" else "broker_unavailable"
            self.queue.record_error("publish")
        return self._obstacle(connection)

    async def _try(self, connection: BrokerConnection, client: Client, message: Message) -> Answer:
        """What the stream says to the message."""
        if message.size > connection.max_payload:
            return "too_large"
        answer = await self._answer_to(client, message)
        if answer not in {"stored", "too_large"}:
            self._backoff.refused()
        return answer

    async def _answer_to(self, client: Client, message: Message) -> Answer:
        from nats.js.errors import APIError, NoStreamResponseError

        if not await _has_room(client):
            return "broker_unavailable"
        try:
            jetstream = client.jetstream(timeout=_REPLY_TIMEOUT)
            stored = await jetstream.publish(self.stream.records, message.payload, headers=dict(message.headers))
            return "stored" if type(stored.seq) is int else "broker_unavailable"
        except NoStreamResponseError:
            return "no_stream"
        except APIError as error:
            code = error.err_code
            return "stream_full" if code in _NO_ROOM else "too_large" if code in _TOO_LARGE else "broker_unavailable"
        except Exception as error:  # noqa: BLE001 - a connection that is being lost, or a reply that is none
            self.log.trouble("publish", "a record could not be published: %s", type(error).__name__)
            return "broker_unavailable"

    def _new_connection(self) -> BrokerConnection:
        from ragspan_nats.connection import BrokerConnection

        made = BrokerConnection(self.access, name=self.name, log=self.log, prepare=self._make_streams)

        async def keep() -> None:
            try:
                await asyncio.get_running_loop().create_future()
            finally:
                await made.close()

        self._keeper = asyncio.get_running_loop().create_task(keep())
        return made

    async def _make_streams(self, client: Client) -> None:
        from ragspan_nats.connection import ensure_streams

        try:
            jetstream = client.jetstream(timeout=_LOOK_TIMEOUT)
            await asyncio.wait_for(ensure_streams(jetstream, self.stream), _LOOK_TIMEOUT)
        except Exception as error:  # noqa: BLE001 - whatever it is, publishing may work
            self.log.trouble(
                "streams",
                "the stream %s could neither be found nor made: %s; records are published all the same",
                self.stream.name,
                type(error).__name__,
            )


async def _has_room(client: Client) -> bool:
    """Wait until what was published before has left; False if it does not."""
    limit = Deadline(_UNSENT_TIMEOUT)
    while client.pending_data_size > _MAX_UNSENT and limit.remaining:  # noqa: ASYNC110 - nats-py tells nobody
        await asyncio.sleep(_LOOK_AGAIN)
    return client.pending_data_size <= _MAX_UNSENT
