"""Tells the broker how deliveries have ended, and waits for its word that it knows.

Guarantees:
- A message is acknowledged, given back or put aside; what the broker does not confirm is told again, on whatever connection
  there is, until `stop`. What it never hears of it delivers again.
- A message that is put aside is in the stream of dead letters before it is taken out of the stream of records.

All of it runs in the worker's loop.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

from ragspan.throttled_log import ThrottledLog
from ragspan_nats.connection import BrokerConnection
from ragspan_nats.dead_letters.letters import put_aside
from ragspan_nats.streams import StreamLimits, StreamNames, ensure_streams
from ragspan_nats.worker.counts import Counts
from ragspan_nats.worker.delivery import Arrival, Verdict

if TYPE_CHECKING:
    from nats.js import JetStreamContext

_CONFIRMATION = 5.0  # seconds that the broker has for it
_PAUSE = 1.0  # seconds until it is told again
_PATIENCE = 120.0  # seconds; a stream that was removed will confirm nothing any more
_LATER = 30.0  # seconds until a message comes again that could not be put aside


class Settlement:
    """Ends deliveries with the broker.

    Args:
        connection: to the broker.
        names: of the streams.
        limits: of the stream of dead letters, where it has to be made.
        counts: told how each delivery ended.
        log: told of trouble.
    """

    def __init__(
        self,
        connection: BrokerConnection,
        names: StreamNames,
        *,
        limits: StreamLimits,
        counts: Counts,
        log: ThrottledLog,
    ) -> None:
        self._connection = connection
        self._names = names
        self._limits = limits
        self._counts = counts
        self._log = log
        self.is_stopping = False
        """Tell the broker once, and not again."""

    async def settle(self, arrival: Arrival, verdict: Verdict) -> None:
        """Tell the broker what has become of a message."""
        if verdict.ending == "put_aside" and not await self._put_aside(arrival, verdict):
            verdict = Verdict(ending="give_back", reason="not_put_aside", delay=_LATER)
        if verdict.ending == "give_back":
            delay = {"delay": int(verdict.delay * 1e9)} if verdict.delay else None
            is_confirmed = await self._tell(arrival, b"-NAK" + (b" " + json.dumps(delay).encode() if delay else b""))
        else:
            is_confirmed = await self._tell(arrival, b"+ACK")
        if verdict.reason:
            self._log.trouble(verdict.reason, "a record was %s: %s", _WORDS[verdict.ending], verdict.reason)
        self._counts.ended(verdict if is_confirmed else Verdict(ending="give_back", reason="not_confirmed"))

    async def _put_aside(self, arrival: Arrival, verdict: Verdict) -> bool:
        from nats.js.errors import NoStreamResponseError

        try:
            jetstream = await self._connection.jetstream()
            try:
                await self._publish(jetstream, arrival, verdict)
            except NoStreamResponseError:  # somebody has removed it since this worker started
                await ensure_streams(jetstream, self._names, self._limits)
                await self._publish(jetstream, arrival, verdict)
        except Exception as error:  # noqa: BLE001 - the message stays in the stream of records
            self._log.trouble("dead_letters", "a record could not be put aside: %s", type(error).__name__)
            return False
        return True

    async def _publish(self, jetstream: JetStreamContext, arrival: Arrival, verdict: Verdict) -> None:
        await put_aside(
            jetstream, self._names, arrival, reason=verdict.reason or "", detail=verdict.detail, timeout=_CONFIRMATION
        )

    async def _tell(self, arrival: Arrival, what: bytes) -> bool:
        """Whether the broker confirmed it."""
        deadline = asyncio.get_running_loop().time() + _PATIENCE
        while not await self._tell_once(arrival, what):
            if self.is_stopping or asyncio.get_running_loop().time() > deadline:
                self._log.trouble("unconfirmed", "the broker does not confirm the end of a delivery")
                return False
            await asyncio.sleep(_PAUSE)
        return True

    async def _tell_once(self, arrival: Arrival, what: bytes) -> bool:
        try:
            client = await self._connection.client()
            await client.request(arrival.reply, what, timeout=_CONFIRMATION)
        except Exception as error:  # noqa: BLE001 - told again
            self._log.trouble("settlement", "the end of a delivery could not be told: %s", type(error).__name__)
            return False
        return True


_WORDS = {"acknowledge": "acknowledged", "give_back": "given back", "put_aside": "put aside"}
