"""The sink: takes captures from the application and publishes them in a thread of its own.

Guarantees:
- `submit` returns within microseconds, does no I/O and never raises. It may be called from any thread, from a finaliser and from a
  signal handler, even while it is being called.
- Each submitted capture ends in exactly one counted way: published, nothing to publish, or dropped with a reason. At every
  moment `submitted = queued + in flight + finished + dropped`. Published means that the stream has acknowledged it.
- The queue is bounded by number and by bytes, what is in flight by number. Nothing grows with the number of requests.
- A broker that is away, slow or full costs records only after the retry timeout, or when the queue is full. While the broker is
  away nothing is computed: a capture becomes a record when the broker is there.
- The stream stores a record once, however often it is submitted or published, within the stream's window for duplicates: a message
  that is published again has the same id.
- `flush` and `shutdown` return when their timeout is over (plus a tenth of a second), whatever hangs.
- The child of a fork has a fresh, empty sink with its own connection. At the end of the process, waiting captures are
  published within `exit_timeout`.
- At most one megabyte and one message wait in nats-py for a connection that takes nothing.
- Between two records the interpreter is free for a moment, so that a request waits for the work on one record at most. (The
  interpreter's own switch comes every five milliseconds. That is far too late for a request that takes thirty.)

Before the first submit there is no thread and no connection. After it the sink lives until `shutdown` or the end of the process.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from ragspan.arguments import SECONDS, instance, whole
from ragspan.backoff import Backoff
from ragspan.config import DropPolicy, Settings, is_enabled
from ragspan.engine._background import BackgroundProcessor, ProcessorOptions
from ragspan.engine._record_queue import Item
from ragspan.engine._redaction import Redaction
from ragspan.engine._threads import Deadline, call_guarded
from ragspan.engine.stats import Dropped, DropReason
from ragspan.exceptions import ConfigurationError, RecordError
from ragspan.records import RagRecord
from ragspan.redaction import Redact, RedactOption, redact_from
from ragspan.telemetry import semconv
from ragspan.telemetry.content import ContentPolicy
from ragspan.throttled_log import ThrottledLog
from ragspan_nats.message import Message, message_of
from ragspan_nats.settings import BrokerAccess, Stream

if TYPE_CHECKING:  # not loaded before they are needed
    from nats.aio.client import Client
    from opentelemetry.metrics import MeterProvider

    from ragspan_nats.connection import BrokerConnection

_IN_FLIGHT = 64
"""Records that are published but not acknowledged. A broker that takes five milliseconds gets 12,000 a second."""
_REDACTION_TIMEOUT = 60.0  # seconds for one record
_BREATH = 50e-6  # seconds; in less time, a request's thread may not be awake
_CLOSE = 1e-3  # seconds between two records within which they count as one stretch of work
_PREPARE_TIMEOUT = 2.0  # seconds for making the streams
_MAX_UNSENT = 1024 * 1024  # bytes
_UNSENT_TIMEOUT, _UNSENT_PAUSE = 5.0, 0.05  # seconds
_REPLY_TIMEOUT = 5.0  # seconds; a cluster that stores three copies takes some milliseconds
_NO_ROOM = frozenset({10002, 10023, 10028, 10047, 10077})  # error codes: account, server, memory, store, stream
_TOO_LARGE = frozenset({10054, 10097})  # error codes: the message for the stream, its headers for any stream
_FIRST_PAUSE, _LONGEST_PAUSE = 0.25, 10.0  # seconds


@dataclass(frozen=True, kw_only=True, slots=True)
class SinkStats:
    """Where every submitted capture is, at one moment.

    `submitted == queued + in_flight + finished + sum(dropped.values())` always holds.
    """

    submitted: int = 0
    queued: int = 0
    in_flight: int = 0
    """Taken from the queue and not yet acknowledged by the stream. While the broker is away, these wait too."""
    finished: int = 0
    """`published + nothing_to_publish`."""
    published: int = 0
    """Records that the stream has, including those that it already had."""
    nothing_to_publish: int = 0
    """Captures that turned out to be no answered request."""
    dropped: Mapping[str, int]
    """By `ragspan.engine.DropReason`; reasons that did not occur are left out."""
    errors: Mapping[str, int]
    """Errors that lost no record, by place: `publish` (the stream refused or did not answer; it is tried again), `worker`, and
    what others report to `count_error`, such as `callback`."""


class NatsSink(BackgroundProcessor):
    """Publishes captured answers to a JetStream stream, from which `ragspan worker` processes score them.

    Args:
        url: the broker, such as `nats://broker:4222`. The credentials come from `RAGSPAN_NATS_*`.
        stream: the stream, or its name. Where the stream is missing, the sink makes it with the limits of the `Stream`, or of
            `RAGSPAN_NATS_MAX_RECORDS`, `_MAX_BYTES` and `_REPLICAS`. Records go to the subject `<name>.records`.
        access: the broker and the credentials, in place of `url` and the environment.
        queue_size: captures that may wait, at least 1.
        queue_bytes: bytes of text that may wait, at least 1, as the captures' size hints add up.
        drop: what is dropped when the queue is full: its `"oldest"` captures, or the `"newest"` one, which is not let in.
        compress_above: bytes of JSON above which a record is compressed, 0 or more.
        retry_timeout: seconds for which the sink tries a record that the broker does not take, 0 or more. If this is longer than the
            stream's window for duplicates, a record whose acknowledgement was lost may be stored twice.
        exit_timeout: seconds that the end of the process may wait for records to be published, 0 or more.
        redact: runs over every text of a record before it is published, as in `ScoringEngine`.
        name: distinguishes the sinks of one process, in thread names, in the metrics about ragspan itself, and at the broker.
        meter_provider: where those metrics go; the global one if None.

    Raises:
        ConfigurationError: an argument, or `RAGSPAN_ENABLED`, is wrong. The message names it and holds no secret.
    """

    _finished_as = semconv.RESULT_PUBLISHED

    def __init__(
        self,
        url: str | None = None,
        *,
        stream: str | Stream = "ragspan",
        access: BrokerAccess | None = None,
        queue_size: int = 2048,
        queue_bytes: int = 64 * 1024 * 1024,
        drop: DropPolicy = "oldest",
        compress_above: int = 8192,
        retry_timeout: float = 600.0,
        exit_timeout: float = 10.0,
        redact: RedactOption = None,
        name: str = "ragspan",
        meter_provider: MeterProvider | None = None,
    ) -> None:
        enabled = is_enabled()
        access = _access_to(url, access, reads_environment=enabled)
        if isinstance(stream, str):
            stream = Stream.from_environment(stream) if enabled else Stream(name=stream)
        instance(Stream, "a name or a Stream").check("stream", stream)
        whole(0).check("compress_above", compress_above)
        SECONDS.check("retry_timeout", retry_timeout)
        self._publishing = partial(
            Publishing,
            access=access,
            stream=stream,
            name=name,
            redact=redact_from(redact) if enabled else None,
            compress_above=compress_above,
            retry_timeout=retry_timeout,
        )
        super().__init__(
            ProcessorOptions(
                queue_size=queue_size,
                queue_bytes=queue_bytes,
                drop=drop,
                concurrency=_IN_FLIGHT,
                exit_timeout=exit_timeout,
                name=name,
            ),
            is_enabled=enabled,
            meter_provider=meter_provider,
        )
        if enabled:
            import ragspan_nats.connection  # noqa: F401 - here, where nobody waits, rather than during the first requests

    def stats(self) -> SinkStats:
        """Where everything is that was submitted. Takes no lock."""
        counts = self._queue.stats
        return SinkStats(
            submitted=counts.submitted,
            queued=counts.queued,
            in_flight=counts.in_flight,
            finished=counts.finished,
            published=counts.scored,  # the queue's word for it
            nothing_to_publish=counts.nothing_to_score,
            dropped=counts.dropped,
            errors=counts.errors,
        )

    def _make_work(self, log: ThrottledLog) -> Publishing:
        return self._publishing(log=log)


def sink_from_settings(settings: Settings) -> NatsSink:
    """A sink for the broker in `settings.sink`, with the stream, its limits and the credentials of `RAGSPAN_NATS_*`.

    Raises:
        ConfigurationError: the address, a credential, the stream's name or a limit is wrong. The message holds no secret.
    """
    return NatsSink(
        settings.sink,
        stream=Stream.from_environment(),
        queue_size=settings.queue_size,
        queue_bytes=settings.queue_bytes,
        drop=settings.drop,
        exit_timeout=settings.exit_timeout,
        redact=settings.redact,
    )


def _access_to(url: str | None, access: BrokerAccess | None, *, reads_environment: bool) -> BrokerAccess:
    if access is None:
        if url is None:
            raise ConfigurationError("no broker is named: give an address, such as nats://broker:4222, or access")
        return BrokerAccess.from_environment(url) if reads_environment else BrokerAccess(url=url)
    instance(BrokerAccess, "a BrokerAccess").check("access", access)
    if url is not None and url != access.url:
        raise ConfigurationError("url and access name two brokers: give one of them")
    return access


@dataclass(kw_only=True, eq=False)
class Publishing:
    """What a sink does with each capture. All of it runs in the event loop of the sink's thread."""

    access: BrokerAccess
    stream: Stream
    log: ThrottledLog
    """Counts errors, too."""
    name: str
    """The connection's name in the broker's statistics."""
    redact: Redact | None
    compress_above: int
    """Bytes of JSON."""
    retry_timeout: float
    """Seconds for a record that the stream does not take."""

    def __post_init__(self) -> None:
        self._redaction = Redaction(self.redact, timeout=_REDACTION_TIMEOUT, log=self.log)
        self._connection: BrokerConnection | None = None
        self._backoff = Backoff(first=_FIRST_PAUSE, longest=_LONGEST_PAUSE)
        self._last_refusal: DropReason = "broker_unavailable"
        self._worked_until = 0.0
        self._shows_texts = ContentPolicy().allows("spans")
        self._keeper: asyncio.Task[None] | None = None

    async def score(self, item: Item) -> Dropped | None:
        """Publish one item, as often as necessary; None if the stream has it."""
        limit = Deadline(self.retry_timeout)
        connection = self._connection = self._connection or self._new_connection()
        message: Message | Dropped | None = None
        while (client := await self._client(connection, limit)) is not None:
            message = message or await self._message_of(item)
            if not isinstance(message, Message):
                return message
            refusal = await self._try(connection, client, message)
            if refusal is None or refusal == "too_large":
                return None if refusal is None else Dropped(reason=refusal)
        return Dropped(reason="broker_unavailable" if connection.ready_client is None else self._last_refusal)

    def stop(self, deadline: Deadline) -> None:  # noqa: ARG002 - nothing here takes time
        self._redaction.close()

    def flush(self, deadline: Deadline) -> bool:  # noqa: ARG002 - likewise
        """True: what has ended is in the stream."""
        return True

    def worker_ended(self) -> None:
        """The keeper closes the connection when it is cancelled. The next worker makes its own."""
        self._connection = None

    async def _message_of(self, item: Item) -> Message | Dropped | None:
        """The item's record as a message, or why there is none; None if the item is out already."""
        if time.monotonic() - self._worked_until < _CLOSE:
            time.sleep(_BREATH)  # noqa: ASYNC251 - frees the interpreter; this loop has nothing else to do
        record = await self._redaction.record_of(item)
        message = self._written(record) if isinstance(record, RagRecord) else record
        self._worked_until = time.monotonic()
        return message

    def _written(self, record: RagRecord) -> Message | Dropped:
        # Prompts and other texts that only spans show are sent if the application's spans may hold them.
        record = record if self._shows_texts else record.without_step_texts()
        message, error = call_guarded(lambda: message_of(record, compress_above=self.compress_above))
        if message is not None:
            return message
        if isinstance(error, RecordError):
            return Dropped(reason="too_large")
        self.log.trouble("capture_error", "a record could not be written: %s", type(error).__name__)
        return Dropped(reason="capture_error")

    async def _client(self, connection: BrokerConnection, limit: Deadline) -> Client | None:
        """The client, when it is ready and no pause is left; None if that takes too long."""
        while limit.remaining:
            if pause := self._backoff.remaining:
                await asyncio.sleep(min(pause, limit.remaining))
            elif (client := connection.ready_client) is not None:
                return client
            else:
                with contextlib.suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(connection.client(), limit.remaining)
        return None

    async def _try(self, connection: BrokerConnection, client: Client, message: Message) -> DropReason | None:
        """Publish once: None if the stream has the message, else why not. After a pause it may be tried again."""
        refusal = "too_large" if message.size > client.max_payload else await self._refusal(connection, client, message)
        if refusal is None:
            self._backoff.succeeded()
        elif refusal == "too_large":
            self.log.trouble("too_large", "a record is larger than the broker takes: %d bytes", message.size)
        else:
            self._backoff.refused()
            self._last_refusal = refusal
            self.log.count("publish")
        return refusal

    async def _refusal(self, connection: BrokerConnection, client: Client, message: Message) -> DropReason | None:
        """Publish once: None if the stream has the message; `broker_unavailable` for all that may change by itself."""
        from nats.js.errors import APIError, NoStreamResponseError

        if not await _has_room(client):
            return "broker_unavailable"
        try:
            jetstream = client.jetstream(timeout=_REPLY_TIMEOUT)
            stored = await jetstream.publish(self.stream.records, message.payload, headers=dict(message.headers))
            return None if type(stored.seq) is int else "broker_unavailable"
        except NoStreamResponseError:
            connection.prepare_again()
        except APIError as error:
            if error.err_code in _NO_ROOM:
                return "stream_full"
            if error.err_code in _TOO_LARGE:
                return "too_large"
        except Exception as error:  # noqa: BLE001 - the connection is being lost, or the reply is invalid
            if connection.ready_client is client:  # a lost connection logs for itself
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
        """Make missing streams. If that fails, go on: an application that may publish need not be allowed to make streams."""
        from ragspan_nats.connection import ensure_streams

        try:
            jetstream = client.jetstream(timeout=_PREPARE_TIMEOUT)
            await asyncio.wait_for(ensure_streams(jetstream, self.stream), _PREPARE_TIMEOUT)
        except Exception as error:  # noqa: BLE001 - publishing may work all the same
            self.log.trouble(
                "streams",
                "the stream %s could neither be found nor made: %s; records are published all the same",
                self.stream.name,
                type(error).__name__,
            )


async def _has_room(client: Client) -> bool:
    """Wait until earlier messages have left the client; False if they do not."""
    limit = Deadline(_UNSENT_TIMEOUT)
    while client.pending_data_size > _MAX_UNSENT and limit.remaining:  # noqa: ASYNC110 - nats-py has no event for it
        await asyncio.sleep(_UNSENT_PAUSE)
    return client.pending_data_size <= _MAX_UNSENT
