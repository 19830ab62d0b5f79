"""The connection to the broker, made again for as long as it takes.

Guarantees:
- `client` waits for as long as there is no connection, and each try that fails is followed by another a second later. nats-py
  reconnects by itself, but gives up for good where a server refuses us while we are connected, and closes its client then;
  it can also wait for a quarter of an hour for bytes to leave that a dead network does not take. Such a client is replaced.
- Where the address or a certificate authority asks for encryption, nothing secret is sent without. nats-py alone encrypts only
  if the server asks for that.
- Nothing that is logged holds a secret, or comes more than once a minute.

All of it runs in one event loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from ragspan.throttled_log import ThrottledLog
from ragspan_nats.access import BrokerAccess

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.js import JetStreamContext

_CONNECT_TIMEOUT = 5  # seconds
_PAUSE = 1  # seconds between tries
_PING_INTERVAL = 10  # seconds; two without an answer, and the connection counts as lost
_STUCK = 15.0  # seconds without a connection and without a try that failed; a try takes no longer than the timeout and a pause
_CLOSE_TIMEOUT = 2.0  # seconds
_PENDING_BYTES = 8 * 1024 * 1024  # that nats-py holds for the socket: more than one message of any size
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


class BrokerConnection:
    """A client of nats-py that is there whenever the broker is.

    Args:
        access: the broker.
        name: what the broker's own statistics call us.
        log: told when the broker is away; never of a secret.
        on_lost: called when a connection has ended.
    """

    def __init__(
        self, access: BrokerAccess, *, name: str, log: ThrottledLog, on_lost: Callable[[], None] | None = None
    ) -> None:
        self._access = access
        self._name = name
        self._log = log
        self._on_lost = on_lost
        self._client: Client | None = None
        self._connecting = asyncio.Lock()
        self._last_try = 0.0
        self._closing: set[asyncio.Task[None]] = set()

    @property
    def is_up(self) -> bool:
        """Whether the broker can be reached at this moment, as far as is known."""
        return self._client is not None and self._client.is_connected

    @property
    def max_payload(self) -> int:
        """Bytes that a message may have, headers included."""
        return 1024 * 1024 if self._client is None else self._client.max_payload

    async def client(self) -> Client:
        """The client, connected; waits for that."""
        asked_at = time.monotonic()
        while True:
            client = self._client
            if client is not None and client.is_connected:
                return client
            if client is None or client.is_closed:
                async with self._connecting:
                    if self._client is client:  # nobody else has made one in the meantime
                        await self._connect()
            else:
                await asyncio.sleep(_PAUSE / 10)  # it is at it
                if time.monotonic() - max(asked_at, self._last_try) > _STUCK:
                    self._abandon(client)

    async def jetstream(self) -> JetStreamContext:
        """JetStream of the client, connected; waits for that."""
        return (await self.client()).jetstream()

    async def close(self) -> None:
        """Let go of the connection; what was published is sent before, if the broker takes it within a second or two."""
        client, self._client = self._client, None
        if client is not None and not client.is_closed:
            await asyncio.wait({self._closing_of(client)}, timeout=_CLOSE_TIMEOUT)

    async def _connect(self) -> None:
        from ragspan_nats.client import BrokerClient

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

    def _abandon(self, client: Client) -> None:
        """Have another client take its place; it closes when it can."""
        if client is not self._client or client.is_connected:
            return
        self._client = None
        self._closing_of(client)

    def _closing_of(self, client: Client) -> asyncio.Task[None]:
        # As a task of its own: nats-py may wait for the same thing twice, and what cancels the one wait cancels the other.
        closing = asyncio.create_task(_close(client))
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)
        return closing

    def _lost(self) -> None:
        self._log.trouble("broker", "the connection to the broker at %s is lost", self._access.place)
        if self._on_lost is not None:
            self._on_lost()

    async def _failed(self, error: Exception) -> None:
        from nats.errors import UnexpectedEOF

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


async def _close(client: Client) -> None:
    with contextlib.suppress(Exception, asyncio.CancelledError):
        await client.close()
