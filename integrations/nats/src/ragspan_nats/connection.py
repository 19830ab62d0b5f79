"""The connection to the broker, made again for as long as it takes; and the streams and the consumer, made where they are missing.

Guarantees:
- `client` waits until there is a connection, and a try that fails is followed by another a second later. nats-py reconnects by
  itself, but gives up for good where a server refuses us while we are connected, and closes its client then; it can also wait
  for a quarter of an hour for bytes to leave that a dead network does not take. Such a client is replaced.
- Each time the connection is made, `prepare` has done its work before anybody gets the client.
- Where the address or a certificate authority asks for encryption, nothing secret is sent without.
- Nothing that is logged holds a secret, or comes more than once a minute.

All of it runs in one event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from nats.aio.client import Client, Srv
from nats.errors import Error, UnexpectedEOF

from ragspan.throttled_log import ThrottledLog
from ragspan_nats.settings import BrokerAccess, Stream, WorkerOptions

if TYPE_CHECKING:
    from nats.js import JetStreamContext

_CONNECT_TIMEOUT = 5  # seconds
_PAUSE = 1  # seconds between tries
_PING_INTERVAL = 10  # seconds; two without an answer, and the connection counts as lost
_STUCK = 15.0  # seconds without a connection and without a try that failed; a try takes no longer than the timeout and a pause
_CLOSE_TIMEOUT = 2.0  # seconds
_PENDING_BYTES = 8 * 1024 * 1024  # that nats-py holds for the socket: more than one message of any size
_IN_USE = 10058  # the stream is there, with other settings than those that we would have made it with
_REFUSALS = (
    "authorization violation",
    "authentication expired",
    "authentication revoked",
    "authentication timeout",
    "permissions violation",
    "maximum connections exceeded",
    "maximum payload violation",
    "tls required",
)
"""What a server says where it refuses something: the only texts of it that are shown."""


class BrokerClient(Client):
    """A client of nats-py, with three things put right.

    - It encrypts a connection only where the server's greeting, which comes in the clear, asks for that. Whoever sits in
      between can leave it out, and would be sent the password.
    - Where a server lets us in no longer, each try to connect again leaves its socket open until the garbage is collected.
    - A message may have headers that are none, since a server stores whatever it is sent. The client stumbles over some of
      them, stops reading for good, and takes its connection for a live one until two pings have gone without an answer.

    Args:
        must_encrypt: whether nothing may be said in the clear. A server that cannot encrypt is none, then.
    """

    def __init__(self, *, must_encrypt: bool) -> None:
        super().__init__()
        self._must_encrypt = must_encrypt

    async def _connect_to_server(self, s: Srv) -> None:
        if self._transport:
            self._transport.close()  # type: ignore[no-untyped-call]
        await super()._connect_to_server(s)

    async def _process_info(self, info: dict[str, Any], initial_connection: bool = False) -> None:  # noqa: FBT001, FBT002 - the base's signature
        if self._must_encrypt:
            info["tls_required"] = True
        await super()._process_info(info, initial_connection)

    def _connect_command(self) -> bytes:
        if self._must_encrypt and not self._server_info.get("tls_required"):
            raise Error("nats: tls required")
        return super()._connect_command()

    async def _process_headers(self, headers: bytes | None) -> dict[str, str] | None:
        try:
            return await super()._process_headers(headers)
        except Exception:  # noqa: BLE001 - whatever a hostile header brings about; the message is read as one without
            return None


class BrokerConnection:
    """A client of nats-py that is there whenever the broker is.

    Args:
        access: the broker.
        name: what the broker's own statistics call us.
        log: told when the broker is away; never of a secret.
        prepare: what is to be done on each new connection before it is used. Where it raises, so does `client`.
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
        self._prepared: Client | None = None
        self._opening: asyncio.Task[None] | None = None
        self._last_try = 0.0
        self._closing: set[asyncio.Task[None]] = set()

    @property
    def is_up(self) -> bool:
        """Whether the broker can be reached at this moment, as far as is known."""
        return self._client is not None and self._client.is_connected

    @property
    def ready_client(self) -> Client | None:
        """The client, if it is connected and prepared at this moment."""
        return self._client if self.is_up and self._client is self._prepared else None

    @property
    def max_payload(self) -> int:
        """Bytes that a message may have, headers included."""
        return 1024 * 1024 if self._client is None else self._client.max_payload

    async def client(self) -> Client:
        """The client, connected and prepared; waits for that.

        Raises:
            Exception: it could not be prepared.
        """
        while (client := self.ready_client) is None:
            if self._opening is None or self._opening.done():
                self._opening = asyncio.create_task(self._open())
                self._opening.add_done_callback(
                    lambda task: task.cancelled() or task.exception()
                )  # nobody may wait for it
            await asyncio.shield(self._opening)  # others wait for it, too
        return client

    def prepare_again(self) -> None:
        """What was prepared may be gone: do it once more before the client is used."""
        self._prepared = None

    async def close(self) -> None:
        """Let go of the connection; what was published is sent before, if the broker takes it within a second or two."""
        if self._opening is not None:
            self._opening.cancel()
            await asyncio.wait({self._opening}, timeout=_CLOSE_TIMEOUT)
        client, self._client = self._client, None
        if client is not None and not client.is_closed:
            await asyncio.wait({self._closing_of(client)}, timeout=_CLOSE_TIMEOUT)

    async def _open(self) -> None:
        """Connect and prepare."""
        began = time.monotonic()
        while self.ready_client is None:
            client = self._client
            if client is None or client.is_closed:
                await self._connect()
            elif client.is_connected:
                if self._prepare is not None:
                    await self._prepare(client)
                self._prepared = client
            elif time.monotonic() - max(began, self._last_try) > _STUCK:
                self._client = None  # another takes its place; it closes when it can
                self._closing_of(client)
            else:
                await asyncio.sleep(_PAUSE / 10)  # it is at it

    async def _connect(self) -> None:
        client = BrokerClient(must_encrypt=self._access.is_encrypted)

        async def lost() -> None:
            if client is self._client:
                self._lost()

        try:
            await client.connect(
                **self._access.options(),
                name=self._name,
                allow_reconnect=True,
                max_reconnect_attempts=-1,
                reconnect_time_wait=_PAUSE,
                connect_timeout=_CONNECT_TIMEOUT,
                ping_interval=_PING_INTERVAL,
                pending_size=_PENDING_BYTES,
                flush_timeout=_CONNECT_TIMEOUT,
                error_cb=self._failed,
                disconnected_cb=lost,
            )
        except Exception as error:  # noqa: BLE001 - whatever is wrong now may be right in a second
            await self._failed(error)
            self._closing_of(client)
            await asyncio.sleep(_PAUSE)
            return
        except BaseException:  # cancelled: it would go on trying by itself
            await asyncio.wait({self._closing_of(client)}, timeout=_CLOSE_TIMEOUT)
            raise
        self._client = client

    def _closing_of(self, client: Client) -> asyncio.Task[None]:
        # As a task of its own: nats-py may wait for the same thing twice, and what cancels the one wait cancels the other.
        closing = asyncio.create_task(_close(client))
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)
        return closing

    def _lost(self) -> None:
        self._log.trouble("broker", "the connection to the broker at %s is lost", self._access.place)
        self.prepare_again()

    async def _failed(self, error: Exception) -> None:
        self._last_try = time.monotonic()
        if isinstance(error, UnexpectedEOF):  # that the connection is lost is told anyway
            return
        # Not all that the error says: a server's or a library's text may hold an address with its password.
        said = str(error).lower()
        refusal = next((text for text in _REFUSALS if text in said), None)
        if refusal is not None:
            self._log.trouble("refusal", "the broker at %s refuses: %s", self._access.place, refusal)
        else:
            self._log.trouble("broker", "the broker at %s cannot be used: %s", self._access.place, type(error).__name__)


async def ensure_streams(jetstream: JetStreamContext, stream: Stream) -> None:
    """Make the streams that are missing. One that is there is left as it is: its limits are its owner's business.

    Raises:
        nats.errors.Error: the broker does not let us, or cannot.
    """
    from nats.js.api import DiscardPolicy, RetentionPolicy, StorageType, StreamConfig
    from nats.js.errors import APIError, NotFoundError

    records = StreamConfig(
        name=stream.name,
        description="Answers that wait to be scored by ragspan's workers",
        subjects=[stream.records],
        retention=RetentionPolicy.WORK_QUEUE,  # what is acknowledged is gone
        discard=DiscardPolicy.NEW,  # a full stream says so, and the sink counts it
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
        discard=DiscardPolicy.OLD,  # a worker that could not put a message aside would be stopped by it
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
                if error.err_code != _IN_USE:  # somebody else has made it in this very moment
                    raise


async def ensure_consumer(jetstream: JetStreamContext, stream: Stream, options: WorkerOptions) -> None:
    """Make the workers' consumer, or give it these settings.

    It delivers a message for as long as nobody acknowledges it: how often is enough the workers decide, who can then put it
    aside together with the reason. A limit of the consumer's own would leave the message in the stream, out of reach.

    Raises:
        nats.errors.Error: the broker does not let us, or cannot.
    """
    from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy

    config = ConsumerConfig(
        durable_name=stream.consumer,
        filter_subject=stream.records,  # whoever made the stream may keep other things there
        deliver_policy=DeliverPolicy.ALL,
        ack_policy=AckPolicy.EXPLICIT,
        ack_wait=options.ack_wait,
        max_deliver=-1,
        max_ack_pending=options.max_ack_pending,
    )
    await jetstream.add_consumer(stream.name, config)


async def _close(client: Client) -> None:
    with contextlib.suppress(Exception, asyncio.CancelledError):
        await client.close()
