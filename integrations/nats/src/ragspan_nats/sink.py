"""The sink: takes captures from the application and publishes them in a thread of its own, until the stream has acknowledged them."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from ragspan.arguments import SECONDS, instance, one_of
from ragspan.backoff import Backoff
from ragspan.config import Settings, UnknownContextsRule, is_enabled
from ragspan.engine import Dropped, DropReason
from ragspan.engine.processor import BackgroundProcessor
from ragspan.engine.record_queue import Item
from ragspan.engine.redaction import Redact, Redaction, RedactOption, redact_from
from ragspan.engine.threads import Deadline, call_guarded
from ragspan.engine.worker import ProcessorOptions
from ragspan.exceptions import RecordError
from ragspan.judges.background import with_prompt_evidence
from ragspan.messages import without_texts
from ragspan.records import RagRecord
from ragspan.telemetry.content import ContentPolicy
from ragspan.throttled_log import ThrottledLog
from ragspan.turns import give_turn
from ragspan_nats.message import BrokerMessage, message_of
from ragspan_nats.settings import BrokerAccess, Stream

if TYPE_CHECKING:  # not loaded before they are needed
    from nats.aio.client import Client
    from opentelemetry.metrics import MeterProvider

    from ragspan_nats.connection import BrokerConnection

_IN_FLIGHT = 64
"""Records that are published but not acknowledged. A broker that takes five milliseconds gets 12,000 a second."""
_REDACTION_TIMEOUT = 60.0  # seconds for one record
_PREPARE_TIMEOUT = 2.0  # seconds for making the streams
_REPLY_TIMEOUT = 5.0  # seconds; a cluster that stores three copies takes some milliseconds
_NO_ROOM = frozenset({10002, 10023, 10028, 10047, 10077})  # error codes: account, server, memory, store, stream
_TOO_LARGE = frozenset({10054, 10097})  # error codes: the message for the stream, its headers for any stream
_FIRST_PAUSE, _LONGEST_PAUSE = 0.25, 10.0  # seconds
_NOT_FOUND = 404
_LONGEST_REQUEST = 1.2  # seconds after which the request of a worker that has died is over


class NatsSink(BackgroundProcessor):
    """Publishes captured answers to a JetStream stream, from which `ragspan worker` processes score them.

    A broker that is away, slow or full costs records only after the retry timeout, or when the queue is full. Nothing is
    computed while it is away. The stream stores a record once, within its window for duplicates, however often it is published.

    Args:
        broker: its address, such as `nats://broker:4222`, with the files that `RAGSPAN_NATS_*` name; or a `BrokerAccess`.
        stream: the stream, or its name, which the sink makes where it is missing. Records go to the subject `<name>.records`.
        queue_size: captures that may wait, at least 1; when the queue is full, the oldest are dropped.
        queue_bytes: bytes of captures that may wait or be in work, at least 1, as the captures' size hints add up.
        retry_timeout: seconds for which the sink tries a record that the broker does not take, 0 or more. If this is longer than the
            stream's window for duplicates, a record whose acknowledgement was lost may be stored twice.
        exit_timeout: seconds that the end of the process may wait for records to be published, 0 or more.
        redact: runs over every text of a record before it is published, as in `ScoringEngine`.
        unknown_contexts: with `"prompt"` workers score answers without known documents by the text of their prompts, as in
            `ScoringEngine`; the sink takes it out of the prompts, which stay here unless spans may have content.
        name: distinguishes the sinks of one process, in thread names, in the metrics about ragspan itself, and at the broker.
        meter_provider: where those metrics go; the global one if None.

    Raises:
        ConfigurationError: an argument, or `RAGSPAN_ENABLED`, is wrong. The message names it and holds no secret.
    """

    _finished_as = "published"

    def __init__(
        self,
        broker: str | BrokerAccess,
        *,
        stream: str | Stream = "ragspan",
        queue_size: int = 2048,
        queue_bytes: int = 64 * 1024 * 1024,
        retry_timeout: float = 600.0,
        exit_timeout: float = 10.0,
        redact: RedactOption = None,
        unknown_contexts: UnknownContextsRule = "skip",
        name: str = "ragspan",
        meter_provider: MeterProvider | None = None,
    ) -> None:
        enabled = is_enabled()
        if isinstance(broker, str):
            broker = BrokerAccess.from_environment(broker) if enabled else BrokerAccess(url=broker)
        if isinstance(stream, str):
            stream = Stream.from_environment(stream) if enabled else Stream(name=stream)
        instance(BrokerAccess, "an address or a BrokerAccess").check("broker", broker)
        instance(Stream, "a name or a Stream").check("stream", stream)
        SECONDS.check("retry_timeout", retry_timeout)
        one_of("skip", "prompt").check("unknown_contexts", unknown_contexts)
        self._access, self._stream = broker, stream
        self._publishing = partial(
            Publishing,
            access=broker,
            stream=stream,
            name=name,
            redact=redact_from(redact) if enabled else None,
            retry_timeout=retry_timeout,
            unknown_contexts=unknown_contexts,
        )
        super().__init__(
            ProcessorOptions(
                queue_size=queue_size,
                queue_bytes=queue_bytes,
                concurrency=_IN_FLIGHT,
                exit_timeout=exit_timeout,
                name=name,
            ),
            is_enabled=enabled,
            meter_provider=meter_provider,
        )
        if enabled:
            import ragspan_nats.connection  # noqa: F401 - here, where nobody waits, rather than during the first requests

    def look_for_workers(self, timeout: float) -> tuple[bool | None, str]:
        """Ask the broker, for `timeout` seconds at most: whether a worker takes the records, None where that is not known; and in words."""
        return asyncio.run(self._look_for_workers(Deadline(timeout)))

    async def _look_for_workers(self, deadline: Deadline) -> tuple[bool | None, str]:
        """A worker that has room has a request for records at the broker all the time. One without room has records in flight."""
        from ragspan_nats.connection import BrokerConnection, error_text

        connection = BrokerConnection(self._access, name="ragspan doctor", log=ThrottledLog())
        name = self._stream.name
        try:
            client = await asyncio.wait_for(connection.client(), deadline.remaining)
            await asyncio.sleep(min(_LONGEST_REQUEST, deadline.remaining / 4))
            jetstream = client.jetstream(timeout=max(deadline.remaining / 2, 0.1))
            info = await jetstream.consumer_info(name, self._stream.consumer)
        except Exception as error:  # noqa: BLE001 - no permission shows as silence; whatever it is, it is said
            if getattr(error, "code", None) == _NOT_FOUND:
                return False, f"no worker has ever asked for the records of the stream {name}"
            return None, f"whether a worker takes the records of the stream {name} is not known: {error_text(error)}"
        finally:
            await connection.close()
        if info.num_waiting:
            return True, f"a worker takes the records of the stream {name}"
        counts = f"{info.num_pending or 0} wait in the stream {name}, {info.num_ack_pending or 0} are in flight"
        # With records in flight, workers are busy, their judge is away, or they have died.
        return None if info.num_ack_pending else False, f"no worker takes records: {counts}"

    def _make_work(self, log: ThrottledLog) -> Publishing:
        return self._publishing(log=log)


def sink_from_settings(settings: Settings) -> NatsSink:
    """A sink for the broker in `settings.sink`, with the stream, its limits and the credentials of `RAGSPAN_NATS_*`.

    Raises:
        ConfigurationError: the address, a credential, the stream's name or a limit is wrong. The message holds no secret.
    """
    return NatsSink(
        settings.sink or "",
        stream=Stream.from_environment(),
        queue_size=settings.queue_size,
        exit_timeout=settings.exit_timeout,
        redact=settings.redact,
        unknown_contexts=settings.unknown_contexts,
    )


@dataclass(kw_only=True, eq=False)
class Publishing:
    """What a sink does with each capture. All of it runs in the event loop of the sink's thread."""

    access: BrokerAccess
    stream: Stream
    log: ThrottledLog
    name: str
    redact: Redact | None
    retry_timeout: float
    unknown_contexts: UnknownContextsRule

    def __post_init__(self) -> None:
        self._redaction = Redaction(self.redact, timeout=_REDACTION_TIMEOUT, log=self.log)
        self._connection: BrokerConnection | None = None
        self._backoff = Backoff(first=_FIRST_PAUSE, longest=_LONGEST_PAUSE)
        self._last_refusal: DropReason = "broker_unavailable"
        self._shows_texts = ContentPolicy().allows()
        self._keeper: asyncio.Task[None] | None = None

    async def process(self, item: Item) -> Dropped | None:
        """Publish one item, as often as necessary; None if the stream has it."""
        limit = Deadline(self.retry_timeout)
        connection = self._connection or self._open_connection()
        message: BrokerMessage | Dropped | None = None
        while limit.remaining:
            if pause := self._backoff.remaining:
                await asyncio.sleep(min(pause, limit.remaining))
                continue
            client = connection.ready_client
            if client is None:
                with contextlib.suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(connection.client(), limit.remaining)
                continue
            message = message or await self._message_of(item)
            if not isinstance(message, BrokerMessage):
                return message
            refusal = await self._publish(connection, client, message)
            if refusal is None:
                self._backoff.succeeded()
                return None
            if refusal == "too_large":
                self.log.report("too_large", "a record is larger than the broker takes: %d bytes", message.size)
                return Dropped(reason="too_large")
            self._backoff.refused()
            self._last_refusal = refusal
            self.log.count("publish")
        return Dropped(reason="broker_unavailable" if connection.ready_client is None else self._last_refusal)

    def stop(self, deadline: Deadline) -> None:  # noqa: ARG002 - nothing here takes time
        self._redaction.close()

    def flush(self, deadline: Deadline) -> bool:  # noqa: ARG002 - likewise
        """True: what has ended is in the stream."""
        return True

    def worker_ended(self) -> None:
        """The keeper closes the connection when it is cancelled. The next worker makes its own."""
        self._connection = None

    async def _message_of(self, item: Item) -> BrokerMessage | Dropped | None:
        """The item's record as a message, or why there is none; None if the item is out already."""
        give_turn()
        record = await self._redaction.redacted_record(item)
        if not isinstance(record, RagRecord):
            return record
        if self.unknown_contexts == "prompt":  # here, where all prompts are
            record = with_prompt_evidence(record)
        # Prompts and other texts that only spans show are sent if the application's spans may hold them.
        message, error = call_guarded(message_of, record if self._shows_texts else without_texts(record))
        if message is not None:
            return message
        if isinstance(error, RecordError):
            return Dropped(reason="too_large")
        self.log.report("capture_error", "a record could not be written: %s", type(error).__name__)
        return Dropped(reason="capture_error")

    async def _publish(self, connection: BrokerConnection, client: Client, message: BrokerMessage) -> DropReason | None:
        """Publish once: None if the stream has the message; `broker_unavailable` for all that may change by itself."""
        from nats.js.errors import APIError, NoStreamResponseError

        from ragspan_nats.connection import error_text

        if message.size > client.max_payload:
            return "too_large"
        try:
            jetstream = client.jetstream(timeout=_REPLY_TIMEOUT)
            await jetstream.publish(self.stream.records, message.payload, headers=dict(message.headers))
        except NoStreamResponseError:
            connection.prepare_again()
        except APIError as error:
            if error.err_code in _TOO_LARGE:
                return "too_large"
            # In the server's words: room may be short in the stream, the account, the store or the memory.
            self.log.report("refusal", "the stream %s takes no record now: %s", self.stream.name, error_text(error))
            if error.err_code in _NO_ROOM:
                return "stream_full"
        except Exception as error:  # noqa: BLE001 - the connection is being lost, or the reply is invalid
            if connection.ready_client is client:  # a lost connection logs for itself
                self.log.report("publish", "a record could not be published: %s", error_text(error))
        else:
            return None
        return "broker_unavailable"

    def _open_connection(self) -> BrokerConnection:
        """The connection of this event loop; it makes missing streams, if it may, and closes at the loop's end."""
        from ragspan_nats.connection import BrokerConnection, ensure_streams, error_text

        async def prepare(client: Client) -> None:
            try:
                jetstream = client.jetstream(timeout=_PREPARE_TIMEOUT)
                await asyncio.wait_for(ensure_streams(jetstream, self.stream), _PREPARE_TIMEOUT)
            except Exception as error:  # noqa: BLE001 - an application that may publish need not be allowed to make streams
                words = "the stream %s could neither be found nor made: %s; records are published all the same"
                self.log.report("streams", words, self.stream.name, error_text(error))

        async def keep() -> None:
            try:
                await asyncio.get_running_loop().create_future()
            finally:
                await connection.close()

        connection = self._connection = BrokerConnection(self.access, name=self.name, log=self.log, prepare=prepare)
        self._keeper = asyncio.get_running_loop().create_task(keep())
        return connection
