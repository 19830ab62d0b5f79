"""The connection to the broker, and the streams. All in one event loop."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from nats.aio.client import Client
from nats.errors import UnexpectedEOF

from ragspan.telemetry.values import legible
from ragspan.throttled_log import ThrottledLog
from ragspan_nats.settings import BrokerAccess, Stream

if TYPE_CHECKING:
    from nats.js import JetStreamContext

_CONNECT_TIMEOUT = 5  # seconds
_PAUSE = 1  # seconds between attempts
_LOOK = 0.1  # seconds between two looks whether nats-py has reconnected
_PING_INTERVAL = 10  # seconds; after two pings without an answer the connection counts as lost
_CLOSE_TIMEOUT = 2.0  # seconds
_RECORDS, _BYTES, _AGE = 100_000, 1024**3, 3 * 24 * 3600.0  # that may wait, their bytes, and for how many seconds
_DUPLICATES = 600.0  # seconds for which a stream remembers message ids
_DEAD_LETTER_BYTES = 256 * 1024 * 1024  # the oldest are deleted for new ones
_DEAD_LETTER_AGE = 30 * 24 * 3600.0  # seconds
_EXISTS = 10058  # error code: the stream exists, with other settings than ours
_MAX_SAID = 200  # characters of an error in the log
_VIOLATION = "permissions violation"


class BrokerClient(Client):
    """The client of nats-py with three corrections; with `must_encrypt` a server that cannot encrypt is not used."""

    def __init__(self, *, must_encrypt: bool) -> None:
        super().__init__()
        self._must_encrypt = must_encrypt

    async def _process_info(self, info: dict[str, Any], initial_connection: bool = False) -> None:  # noqa: FBT001, FBT002 - the base's signature
        # nats-py encrypts only if the server's greeting asks for it, which comes in the clear: who is in between can leave it out.
        if self._must_encrypt:
            info["tls_required"] = True
        await super()._process_info(info, initial_connection)

    async def _process_headers(self, headers: bytes | None) -> dict[str, str] | None:
        try:
            return await super()._process_headers(headers)
        except Exception:  # noqa: BLE001 - a server stores any bytes as headers, and some make nats-py stop reading for good
            return None

    async def _process_op_err(self, e: Exception) -> None:
        self.abort()  # else it waits up to a quarter of an hour for bytes that a dead network does not take
        await super()._process_op_err(e)

    def abort(self) -> None:
        """Drop the connection without waiting for the network."""
        writer = getattr(self._transport, "_io_writer", None)
        if writer is not None:
            writer.transport.abort()


class BrokerConnection:
    """A client of nats-py that is there whenever the broker is: it reconnects, and a new one is made where it has given up for good.

    Args:
        access: the broker.
        name: the connection's name in the broker's statistics.
        log: gets a line when the broker is away. No line holds a secret.
        prepare: called with the client after each connect, before anybody gets it. If it raises, `client` raises the same.
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
        self._client: BrokerClient | None = None
        self._is_prepared = False
        self._opening = asyncio.Lock()  # one caller connects, the others wait for it

    @property
    def ready_client(self) -> Client | None:
        """The client, if it is connected and prepared now."""
        client = self._client
        return client if client is not None and client.is_connected and self._is_prepared else None

    async def client(self) -> Client:
        """The client, as soon as it is connected and prepared, however long that takes."""
        async with self._opening:
            while (ready := self.ready_client) is None:
                client = self._client
                if client is None or client.is_closed:
                    await self._connect()
                elif not client.is_connected:
                    await asyncio.sleep(_LOOK)
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
        client, self._client = self._client, None
        if client is not None:
            await _close(client)

    async def _connect(self) -> None:
        self._is_prepared = False
        client = BrokerClient(must_encrypt=self._access.is_encrypted)

        async def disconnected() -> None:
            self._is_prepared = False
            if self._client is not None:
                self._log.report("broker", "the connection to the broker at %s is lost", self._access.place)

        try:
            await client.connect(
                **self._access.options(),
                name=self._name,
                max_reconnect_attempts=-1,  # as often as it takes
                reconnect_time_wait=_PAUSE,
                connect_timeout=_CONNECT_TIMEOUT,
                ping_interval=_PING_INTERVAL,
                flush_timeout=_CONNECT_TIMEOUT,
                error_cb=self._failed,
                disconnected_cb=disconnected,
            )
        except BaseException as error:
            await _close(client)
            if not isinstance(error, Exception):  # cancelled
                raise
            await self._failed(error)
            await asyncio.sleep(_PAUSE)
        else:
            self._client = client

    async def _failed(self, error: Exception) -> None:
        if not isinstance(error, UnexpectedEOF):  # which `disconnected` logs
            # Without our credentials: the client gets them apart from the addresses. One kind must not hide another.
            text = error_text(error)
            kind = text if _VIOLATION in text.lower() else type(error).__name__
            self._log.report(kind, "the broker at %s cannot be used: %s", self._access.place, text)


def error_text(error: BaseException) -> str:
    """What the server says, or what kind of error it is; one line, without our credentials."""
    return legible(getattr(error, "description", None) or str(error) or type(error).__name__)[:_MAX_SAID]


async def _close(client: BrokerClient) -> None:
    """Close it, within two seconds: it may wait for a network that takes nothing."""
    with contextlib.suppress(Exception):
        await asyncio.wait_for(client.close(), _CLOSE_TIMEOUT)
    client.abort()


async def ensure_streams(jetstream: JetStreamContext, stream: Stream) -> None:
    """Make the streams that are missing; raises errors of NATS. Others are left: somebody else may have chosen their limits."""
    from nats.js.api import DiscardPolicy, RetentionPolicy, StorageType, StreamConfig
    from nats.js.errors import APIError, NotFoundError

    records = StreamConfig(
        name=stream.name,
        description="Answers that wait to be scored by ragspan's workers",
        subjects=[stream.records],
        retention=RetentionPolicy.WORK_QUEUE,  # what is acknowledged is deleted
        discard=DiscardPolicy.NEW,  # a full stream refuses records, and the sink counts them
        max_msgs=_RECORDS,
        max_bytes=_BYTES,
        max_age=_AGE,
    )
    dead_letters = StreamConfig(
        name=stream.dead_stream,
        description="Records that ragspan's workers could not score, with the reasons",
        subjects=[stream.dead_letters],
        discard=DiscardPolicy.OLD,  # a full stream must not stop the workers
        max_bytes=_DEAD_LETTER_BYTES,
        max_age=_DEAD_LETTER_AGE,
    )
    for config in (records, dead_letters):
        config.storage, config.num_replicas, config.duplicate_window = StorageType.FILE, stream.replicas, _DUPLICATES
        try:
            await jetstream.stream_info(config.name or "")
        except NotFoundError:
            try:
                await jetstream.add_stream(config)
            except APIError as error:
                if error.err_code != _EXISTS:  # somebody else has just made it
                    raise
