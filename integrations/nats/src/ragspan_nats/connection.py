"""The connection to the broker, which is made again as long as it is needed, and the streams and the consumer.

Guarantees:
- `client` waits until there is a connection. Each has a client of nats-py of its own: to reconnect, nats-py would first wait, up
  to a quarter of an hour, for bytes that a dead network does not take, and it gives up for good if a server refuses it.
- Each new connection is prepared before anybody gets its client.
- If the address or a certificate authority asks for encryption, no secret is sent without it.
- No log line holds a secret, and none is written more than once a minute.

All of it runs in one event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from nats.aio.client import Client
from nats.errors import ConnectionClosedError, UnexpectedEOF

from ragspan.telemetry.values import legible
from ragspan.throttled_log import ThrottledLog
from ragspan_nats.settings import BrokerAccess, Stream, WorkerOptions

if TYPE_CHECKING:
    from nats.js import JetStreamContext

_CONNECT_TIMEOUT = 5  # seconds
_PAUSE = 1  # seconds between attempts
_PING_INTERVAL = 10  # seconds; after two pings without an answer the connection counts as lost
_CLOSE_TIMEOUT = 2.0  # seconds
_EXISTS = 10058  # error code: the stream exists, with other settings than ours
_MAX_SAID = 200  # characters of an error in the log
_VIOLATION = re.compile(r'permissions violation for (publish|subscription) to "([^"]*)"', re.IGNORECASE)
_DEEDS = {"publish": "publish", "subscription": "subscribe"}
_NAMED = 3  # parts of a subject that tell what is not permitted; the others are names and numbers


class BrokerClient(Client):
    """The client of nats-py with four corrections.

    - nats-py encrypts a connection only if the server's greeting asks for it, which comes in the clear. An attacker in between
      can leave that out and would get the password.
    - A server stores any bytes as headers. Some of them make the client stop reading for good.
    - A connection that a dead network ends raises when it is closed, in a task that nobody awaits.
    - Requests under way when the connection ends wait for their time limit, though no answer can come.

    Args:
        must_encrypt: whether nothing may be sent in the clear. Then a server that cannot encrypt is not used.
    """

    def __init__(self, *, must_encrypt: bool) -> None:
        super().__init__()
        self._must_encrypt = must_encrypt

    async def _process_info(self, info: dict[str, Any], initial_connection: bool = False) -> None:  # noqa: FBT001, FBT002 - the base's signature
        if self._must_encrypt:
            info["tls_required"] = True
        await super()._process_info(info, initial_connection)

    async def _process_headers(self, headers: bytes | None) -> dict[str, str] | None:
        try:
            return await super()._process_headers(headers)
        except Exception:  # noqa: BLE001 - whatever invalid headers cause; the message is read without headers
            return None

    async def _close(self, status: int, do_cbs: bool = True) -> None:  # noqa: FBT001, FBT002 - likewise
        with contextlib.suppress(OSError):
            await super()._close(status, do_cbs)
        for answer in list(self._resp_map.values()):
            if not answer.done():
                answer.set_exception(ConnectionClosedError())


class BrokerConnection:
    """A client of nats-py that is there whenever the broker is.

    Args:
        access: the broker.
        name: the connection's name in the broker's statistics.
        log: gets a line when the broker is away.
        prepare: called with each new connection before it is used. If it raises, `client` raises the same.
    """

    def __init__(
        self,
        access: BrokerAccess,
        *,
        name: str,
        log: ThrottledLog,
        prepare: Callable[[Client], Awaitable[object]] | None = None,
    ) -> None:
        self._access = access
        self._name = name
        self._log = log
        self._prepare = prepare
        self._client: Client | None = None
        self._is_prepared = False
        self._opening = asyncio.Lock()  # one caller connects, the others wait for it
        self._closing: set[asyncio.Task[None]] = set()

    @property
    def ready_client(self) -> Client | None:
        """The client, if it is connected and prepared now."""
        client = self._client
        return client if client is not None and client.is_connected and self._is_prepared else None

    async def client(self) -> Client:
        """The client, as soon as it is connected and prepared.

        Raises:
            Exception: what `prepare` raised.
        """
        async with self._opening:
            while (ready := self.ready_client) is None:
                client = self._client
                if client is None or not client.is_connected:
                    await self._connect()
                else:
                    if self._prepare is not None:
                        await self._prepare(client)
                    self._is_prepared = True
        return ready

    def prepare_again(self) -> None:
        """Prepare the client once more before its next use: the streams or the consumer may be gone."""
        self._is_prepared = False

    async def close(self) -> None:
        """Close the connection. What was published is sent before, if the broker takes it within two seconds."""
        if self._client is not None:
            self._close(self._client)
            self._client = None
        if self._closing:
            await asyncio.wait(self._closing, timeout=_CLOSE_TIMEOUT)

    async def _connect(self) -> None:
        """Try it once; after a failure, wait for a moment."""
        options = self._access.options()
        if self._client is not None:
            self._log.report("broker", "the connection to the broker at %s is lost", self._access.place)
            # The other servers of the cluster, as the last one named them.
            options["servers"] += [server.geturl() for server in self._client.discovered_servers]
        self._is_prepared = False
        client = BrokerClient(must_encrypt=self._access.is_encrypted)
        try:
            await client.connect(
                **options,
                name=self._name,
                allow_reconnect=False,
                max_reconnect_attempts=-1,  # of servers that cannot be reached: the first connection is awaited
                reconnect_time_wait=_PAUSE,
                connect_timeout=_CONNECT_TIMEOUT,
                ping_interval=_PING_INTERVAL,
                flush_timeout=_CONNECT_TIMEOUT,
                error_cb=self._failed,
            )
        except Exception as error:  # noqa: BLE001 - the next attempt may succeed, whatever it was
            self._close(client)
            await self._failed(error)
            await asyncio.sleep(_PAUSE)
        except BaseException:  # cancelled; the client would go on connecting
            self._close(client)
            raise
        else:
            self._client = client

    def _close(self, client: Client) -> None:
        """Close it in a task: it may wait for a network that takes nothing."""
        closing = asyncio.create_task(_closed(client))
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)

    async def _failed(self, error: Exception) -> None:
        if isinstance(error, UnexpectedEOF):  # the next attempt logs that the connection is lost
            return
        if (violation := _VIOLATION.search(str(error))) is not None:
            deed, subject = _DEEDS[violation[1].lower()], violation[2]
            # One must not hide another, so each kind of subject has a line of its own.
            self._log.report(
                f"may not {deed} {subject.split('.')[:_NAMED]}",
                "the broker at %s does not permit us to %s to %s; docs/fleet.md lists what each user needs",
                self._access.place,
                deed,
                legible(subject)[:_MAX_SAID],
            )
            return
        # Without our credentials: the client gets them apart from the addresses.
        kind = "broker" if isinstance(error, OSError) else type(error).__name__
        self._log.report(kind, "the broker at %s cannot be used: %s", self._access.place, error_text(error))


def error_text(error: BaseException) -> str:
    """What the server says, or what kind of error it is; one line, without our credentials."""
    return legible(getattr(error, "description", None) or str(error) or type(error).__name__)[:_MAX_SAID]


async def _closed(client: Client) -> None:
    with contextlib.suppress(Exception, asyncio.CancelledError):
        await client.close()


async def ensure_streams(jetstream: JetStreamContext, stream: Stream) -> None:
    """Make the streams that are missing. Existing ones are left as they are: somebody else may have chosen their limits.

    Raises:
        nats.errors.Error: the broker does not permit it, or fails.
    """
    from nats.js.api import DiscardPolicy, RetentionPolicy, StorageType, StreamConfig
    from nats.js.errors import APIError, NotFoundError

    records = StreamConfig(
        name=stream.name,
        description="Answers that wait to be scored by ragspan's workers",
        subjects=[stream.records],
        retention=RetentionPolicy.WORK_QUEUE,  # what is acknowledged is deleted
        discard=DiscardPolicy.NEW,  # a full stream refuses records, and the sink counts them
        max_msgs=stream.max_records,
        max_bytes=stream.max_bytes,
        max_age=stream.max_age,
        duplicate_window=min(stream.duplicate_window, stream.max_age),
    )
    dead_letters = StreamConfig(
        name=stream.dead_stream,
        description="Records that ragspan's workers could not score, with the reasons",
        subjects=[stream.dead_letters],
        retention=RetentionPolicy.LIMITS,
        discard=DiscardPolicy.OLD,  # a full stream must not stop the workers
        max_bytes=stream.dead_letter_bytes,
        max_age=stream.dead_letter_age,
        duplicate_window=min(stream.duplicate_window, stream.dead_letter_age),
    )
    for config in (records, dead_letters):
        try:
            await jetstream.stream_info(config.name or "")
        except NotFoundError:  # noqa: PERF203 - there are two
            try:
                await jetstream.add_stream(config, storage=StorageType.FILE, num_replicas=stream.replicas)
            except APIError as error:
                if error.err_code != _EXISTS:  # somebody else has just made it
                    raise


async def ensure_consumer(jetstream: JetStreamContext, stream: Stream, options: WorkerOptions, about: str = "") -> None:
    """Make the workers' consumer, or change it to these settings; `about` describes it to whoever looks at it.

    It has no limit of deliveries: it would leave the message in the stream, out of reach. The workers count deliveries and
    make a dead letter of the message.

    Raises:
        nats.errors.Error: the broker does not permit it, or fails.
    """
    from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy

    config = ConsumerConfig(
        durable_name=stream.consumer,
        description=about,
        filter_subject=stream.records,  # a stream that somebody else made may have other subjects
        deliver_policy=DeliverPolicy.ALL,
        ack_policy=AckPolicy.EXPLICIT,
        ack_wait=options.ack_wait,
        max_deliver=-1,
        max_ack_pending=options.max_ack_pending,
    )
    await jetstream.add_consumer(stream.name, config)
