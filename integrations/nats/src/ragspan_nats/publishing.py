"""Publishes captures to the stream: each is made a record, written as a message, published, and counted.

Guarantees:
- A capture is made a record, and written, once the broker is there: while it is away nothing is computed.
- Between two records the interpreter is let go of for a moment, so that a request waits for the work on one at most. (The
  interpreter's own switch comes every five milliseconds, far too late for a request that takes thirty.)
- Each time the connection is made, the streams are there or are made, if the broker lets us and answers within two seconds. If
  it does not, records are published all the same: who may publish need not be allowed to make streams.
- When the connection is lost, whoever waits for an acknowledgement is told at once. A message that is published again has the
  same id, by which the stream knows it.
- Not more than a megabyte, and a message, waits in nats-py for a connection that takes nothing.

All of it runs in the worker's event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, TypeAlias

from ragspan.engine._boundary import attempt
from ragspan.engine._deadline import Deadline
from ragspan.engine._record_queue import CompletionListener, Item
from ragspan.engine._redaction import Redaction
from ragspan.engine.stats import DropReason
from ragspan.exceptions import RecordError
from ragspan.records import RagRecord
from ragspan.telemetry.content import ContentPolicy
from ragspan.throttled_log import ThrottledLog
from ragspan_nats.connection import BrokerConnection
from ragspan_nats.message import Message, message_of, size_of
from ragspan_nats.streams import ensure_streams

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.aio.msg import Msg

    from ragspan_nats.sink import SinkOptions

_REDACTION_TIMEOUT = 60.0  # seconds for one record
_BREATH = 50e-6  # seconds; less, and a request's thread may not be awake before we go on
_CLOSE = 1e-3  # seconds from one record to the next within which they count as one stretch of work
_ANSWER_TIMEOUT = 5.0  # seconds; a cluster that stores three copies takes some milliseconds
_LOOK_TIMEOUT = 2.0  # seconds for seeing to the streams
_PAUSE = 1.0  # seconds, where a connection was lost while it was being made ready
_MAX_UNSENT = 1024 * 1024  # bytes
_LOOK_AGAIN = 0.05  # seconds
_NO_RESPONDERS = "503"
_NO_ROOM = frozenset({10002, 10023, 10028, 10047, 10077})  # account, server, memory, store, stream
_TOO_LARGE = frozenset({10054, 10097})  # the message for the stream, or its headers for any
_SHORTEST_REST, _LONGEST_REST = 0.25, 10.0  # seconds

Answer: TypeAlias = Literal["stored", "stream_full", "too_large", "no_stream", "refused"]
"""What the stream says to a message. `refused` is anything that may change."""


class Brake:
    """How long publishing rests while the stream takes nothing: longer after every refusal, not at all after a success."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._pause = 0.0
        self._until = 0.0

    @property
    def remaining(self) -> float:
        """Seconds left of the pause; 0 without one."""
        return max(0.0, self._until - self._clock()) if self._until else 0.0

    def press(self) -> None:
        """Something was refused. What is refused during a pause was sent before it, and makes it no longer."""
        now = self._clock()
        if now < self._until:
            return
        self._pause = min(max(_SHORTEST_REST, 2 * self._pause), _LONGEST_REST)
        self._until = now + self._pause

    def release(self) -> None:
        """Something was taken."""
        self._pause = self._until = 0.0


class StreamPublisher:
    """Publishes messages to the stream, on a connection that is kept for as long as the event loop runs."""

    def __init__(self, options: SinkOptions, *, account: CompletionListener, log: ThrottledLog) -> None:
        self._options = options
        self._account = account
        self._log = log
        self._brake = Brake()
        self._last_refusal: DropReason = "broker_unavailable"
        self._connection = BrokerConnection(options.access, name=options.name, log=log, on_lost=self._close)
        self._client: Client | None = None
        """None while the connection, or the stream, is not there."""
        self._listens_on: Client | None = None
        self._inbox, self._number = "", 0
        self._opened, self._closed = asyncio.Event(), asyncio.Event()
        self._waiting: dict[str, tuple[asyncio.Future[Answer | None], float]] = {}
        """Answers that have not come, in the order in which they are due. One timer a message would cost the application more."""
        self._timer: asyncio.TimerHandle | None = None
        self._keeper = asyncio.get_running_loop().create_task(self._keep())

    @property
    def obstacle(self) -> DropReason:
        """Why a record is given up that could not be published in time."""
        return "broker_unavailable" if self._usable() is None else self._last_refusal

    async def ready(self, limit: Deadline) -> Client | None:
        """What publishes, once it is there and nothing rests; None if that does not come in time."""
        while limit.remaining:
            if pause := self._brake.remaining:
                await asyncio.sleep(min(pause, limit.remaining))
            elif (client := self._usable()) is not None:
                return client
            else:
                with contextlib.suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(self._opened.wait(), limit.remaining)
        return None

    async def publish(self, message: Message, limit: Deadline) -> DropReason | None:
        """None once the stream has the message; else why it was given up."""
        while (client := await self.ready(limit)) is not None:
            if size_of(message) > self._connection.max_payload:
                reason: DropReason | None = "too_large"
            else:
                reason = await self._try(client, message)
            if reason is None:
                self._brake.release()
                return None
            if reason == "too_large":
                self._log.trouble("too_large", "a record is larger than the broker takes: %d bytes", size_of(message))
                return reason
            self._last_refusal = reason
            self._account.record_error("publish")
        return self.obstacle

    async def _try(self, client: Client, message: Message) -> DropReason | None:
        """None once the stream has the message."""
        answer: Answer | None = "refused"
        try:
            answer = await self._ask(client, message)
        except Exception as error:  # noqa: BLE001 - nats-py's, of a connection that is being lost
            self._log.trouble("publish", "a record could not be published: %s", type(error).__name__)
        if answer == "no_stream":
            self._close()  # to see to the stream
        if answer in {"stream_full", "no_stream", "refused"}:
            self._brake.press()
        if answer == "stored":
            return None
        return answer if answer in {"too_large", "stream_full"} else "broker_unavailable"

    async def _ask(self, client: Client, message: Message) -> Answer | None:
        """What the stream says to the message; None if nobody says anything in time, or can say anything any more."""
        if not await self._has_room(client):
            return None
        loop = asyncio.get_running_loop()
        self._number += 1
        reply_to, due = f"{self._inbox}.{self._number}", loop.time() + _ANSWER_TIMEOUT
        answer: asyncio.Future[Answer | None] = loop.create_future()
        self._waiting[reply_to] = (answer, due)
        if self._timer is None:
            self._timer = loop.call_at(due, self._expire)
        try:
            await client.publish(
                self._options.names.records, message.payload, reply=reply_to, headers=dict(message.headers)
            )
            return await answer
        finally:
            self._waiting.pop(reply_to, None)

    async def _hear(self, message: Msg) -> None:
        waiting = self._waiting.get(message.subject)
        if waiting is not None:
            _resolve(waiting[0], _answer_in(message))

    async def _has_room(self, client: Client) -> bool:
        """Wait until what was published before has left; False if it does not."""
        limit = Deadline(_ANSWER_TIMEOUT)
        while client.pending_data_size > _MAX_UNSENT and limit.remaining:  # noqa: ASYNC110 - nats-py tells nobody
            await asyncio.sleep(_LOOK_AGAIN)
        return client.pending_data_size <= _MAX_UNSENT

    def _expire(self) -> None:
        self._timer = None
        loop = asyncio.get_running_loop()
        for answer, due in self._waiting.values():  # in the order in which they are due
            if due > loop.time():
                self._timer = loop.call_at(due, self._expire)
                break
            _resolve(answer, None)

    def _usable(self) -> Client | None:
        if self._client is not None and not self._connection.is_up:  # and nobody has told us yet
            self._close()
        return self._client

    def _close(self) -> None:
        """The connection is lost, or the stream: nothing is published until both are there again."""
        self._client = None
        self._opened.clear()
        self._closed.set()
        for answer, _ in self._waiting.values():
            _resolve(answer, None)

    async def _keep(self) -> None:
        try:
            while True:
                await self._keep_open()
        finally:
            await self._connection.close()

    async def _keep_open(self) -> None:
        """Open the way to the stream, and return when it is closed."""
        try:
            await self._open()
        except Exception as error:  # noqa: BLE001 - nats-py's, of a connection that was lost this very moment
            self._log.trouble("broker", "the connection could not be used: %s", type(error).__name__)
            await asyncio.sleep(_PAUSE)
        else:
            await self._closed.wait()

    async def _open(self) -> None:
        client = await self._connection.client()
        self._closed.clear()
        if client is not self._listens_on:
            self._inbox = client.new_inbox()
            await client.subscribe(f"{self._inbox}.*", cb=self._hear)
            self._listens_on = client
        jetstream = client.jetstream(timeout=_LOOK_TIMEOUT)
        try:
            await asyncio.wait_for(ensure_streams(jetstream, self._options.names, self._options.limits), _LOOK_TIMEOUT)
        except Exception as error:  # noqa: BLE001 - whatever it is, publishing may work
            self._log.trouble(
                "streams",
                "the stream %s could neither be found nor made: %s; records are published all the same",
                self._options.names.stream,
                type(error).__name__,
            )
        if not self._closed.is_set():
            self._client = client
            self._opened.set()


def _resolve(answer: asyncio.Future[Answer | None], result: Answer | None) -> None:
    if not answer.done():  # nobody waits for a cancelled one
        answer.set_result(result)


def _answer_in(message: Msg) -> Answer:
    """What this reply to a publish says. Garbage is a refusal. nats-py's own `publish_async` never answers some errors."""
    if message.headers and message.headers.get("Status") == _NO_RESPONDERS:
        return "no_stream"
    try:
        reply = json.loads(message.data)
    except ValueError:
        return "refused"
    if not isinstance(reply, dict):
        return "refused"
    error = reply.get("error")
    if error is None:
        return "stored" if isinstance(reply.get("seq"), int) and "stream" in reply else "refused"
    code = error.get("err_code") if isinstance(error, dict) else None
    if not isinstance(code, int):
        return "refused"
    if code in _NO_ROOM:
        return "stream_full"
    return "too_large" if code in _TOO_LARGE else "refused"


class Publishing:
    """Publishes the captures of a sink: the work of its background processor, and what is flushed and shut down after it."""

    def __init__(self, options: SinkOptions, *, account: CompletionListener, log: ThrottledLog) -> None:
        self._options = options
        self._account = account
        self._log = log
        self._redaction = Redaction(options.redact, timeout=_REDACTION_TIMEOUT, account=account, log=log)
        self._publisher: StreamPublisher | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._worked_until = 0.0
        self._shows_texts = ContentPolicy().allows("spans")

    def prepare_for_exit(self) -> None:
        self._redaction.prepare_for_exit()

    async def score(self, item: Item) -> None:
        """Bring one item to its end."""
        publisher = self._publisher_here()
        limit = Deadline(self._options.retry_timeout)
        if await publisher.ready(limit) is None:
            self._account.end_dropped(item, publisher.obstacle)
            return
        self._breathe()
        record = await self._redaction.record_of(item)
        message = None if record is None else self._message_of(item, record)
        self._worked_until = time.monotonic()
        if message is None:
            return
        reason = await publisher.publish(message, limit)
        if reason is None:
            self._account.end_scored(item)
        else:
            self._account.end_dropped(item, reason)

    def close(self, deadline: Deadline) -> None:  # noqa: ARG002 - nothing here takes time
        self._redaction.close()

    def flush(self, deadline: Deadline) -> bool:  # noqa: ARG002 - likewise
        """True: what is out is with the stream."""
        return True

    def shutdown(self, deadline: Deadline) -> None:
        """The connection ends with the event loop."""

    def hang_up(self) -> None:
        """The publisher closes the connection when its task is cancelled."""

    def let_go(self) -> None:
        self._publisher = self._loop = None

    def _breathe(self) -> None:
        """Wait, with nothing of the interpreter held. In this event loop there is nothing that could run meanwhile."""
        if time.monotonic() - self._worked_until < _CLOSE:
            time.sleep(_BREATH)

    def _publisher_here(self) -> StreamPublisher:
        """That of this event loop: a worker that died has a successor, with a loop of its own."""
        loop = asyncio.get_running_loop()
        if self._publisher is None or self._loop is not loop:
            self._publisher = StreamPublisher(self._options, account=self._account, log=self._log)
            self._loop = loop
        return self._publisher

    def _message_of(self, item: Item, record: RagRecord) -> Message | None:
        """The record as a message; None if the item has ended without one."""
        message, error = attempt(self._written, record)
        if isinstance(error, RecordError):
            self._account.end_dropped(item, "too_large")
        elif error is not None:
            self._account.end_dropped(item, "capture_error")
            self._log.trouble("capture_error", "a record could not be written: %s", type(error).__name__)
        return message if self._account.has_in_work(item) else None

    def _written(self, record: RagRecord) -> Message:
        """The message; prompts and the like, which only spans show, go along where the application's spans may have them."""
        record = record if self._shows_texts else record.without_step_texts()
        return message_of(record, compress_above=self._options.compress_above)
