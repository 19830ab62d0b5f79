"""One worker: its loop, and what becomes of each message.

Guarantees:
- A message is acknowledged only after its scores have been exported. Whatever happens before that, the broker delivers it
  again, to this worker or to another.
- A message that is no record, or that was delivered too often, is put aside with its reason. None stops the worker.
- What is in hand is bounded, and the broker hears of it three times in `ack_wait`, however long a judge or a backend takes.
- While the judge's service is away, records are taken up slower and slower, so that they do not use up their deliveries.
- `stop` takes nothing new, finishes what is in hand within `grace` seconds, and gives the rest back at once.

The loop belongs to the thread that calls `run`; `stop` has to be called in it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ragspan.exceptions import RecordError
from ragspan.throttled_log import ThrottledLog
from ragspan_nats.access import BrokerAccess
from ragspan_nats.connection import BrokerConnection
from ragspan_nats.message import Message, record_of
from ragspan_nats.streams import StreamLimits, StreamNames
from ragspan_nats.worker.counts import Counts, WorkerStats
from ragspan_nats.worker.delivery import Arrival, Delivery, Verdict
from ragspan_nats.worker.emitters import JUDGE_OUTAGE
from ragspan_nats.worker.health import Health
from ragspan_nats.worker.in_hand import InHand
from ragspan_nats.worker.options import WorkerOptions
from ragspan_nats.worker.pull import Pull
from ragspan_nats.worker.scoring import FleetScoring
from ragspan_nats.worker.settlement import Settlement

if TYPE_CHECKING:
    from nats.aio.msg import Msg

    from ragspan.config import Settings

INVALID_RECORD = "invalid_record"
DELIVERIES_USED_UP = "deliveries_used_up"
LOST = "lost"
STOPPED = "stopped"

_TICK = 1.0  # seconds between two looks at what is in hand
_HANGS = 10.0  # seconds without a tick after which the loop counts as hanging
_LOST_AFTER = 60.0  # seconds over the metrics' time limit, when the engine must have lost a record
_OUTAGE_PAUSES = (1.0, 2.0, 5.0, 10.0, 30.0)  # seconds without new records, by how many outages came one after another
_LAST_WORDS = 5.0  # seconds for giving back what is left


class Worker:
    """Scores the records of a stream, until it is stopped.

    Args:
        access: the broker.
        settings: of the engine and its emitters; `OTEL_*` variables say where to export.
        options: of the worker.
        names: of the streams.
        limits: of the streams, where they have to be made.

    Raises:
        ConfigurationError: no exporter is configured, or a setting cannot be used.
    """

    def __init__(
        self,
        access: BrokerAccess,
        settings: Settings,
        *,
        options: WorkerOptions,
        names: StreamNames,
        limits: StreamLimits | None = None,
    ) -> None:
        self._options = options
        self._log = ThrottledLog()
        self._in_hand = InHand()
        self._scoring = FleetScoring(settings, options, self._in_hand, on_end=self._ended_elsewhere, log=self._log)
        self._time_limit = settings.metric_timeout + _LOST_AFTER
        self._counts = Counts(self._scoring.meter_provider, lambda: len(self._in_hand))
        self._connection = BrokerConnection(access, name="ragspan worker", log=self._log)
        self._settlement = Settlement(self._connection, names, self._counts, self._log)
        self._pull = Pull(
            self._connection,
            names,
            limits=limits or StreamLimits(),
            ack_wait=options.ack_wait,
            max_ack_pending=options.max_ack_pending,
            room=self._room,
            on_message=self._take,
            log=self._log,
        )
        self._loop: asyncio.AbstractEventLoop | None = None
        self._settling: set[asyncio.Task[None]] = set()
        self._stop = asyncio.Event()
        self._hurry = asyncio.Event()
        self._outages = 0
        self._pause_until = 0.0
        self._last_tick = time.monotonic()

    def stats(self) -> WorkerStats:
        """What it has done so far."""
        return self._counts.stats()

    def health(self) -> Health:
        """How it is; may be asked from any thread."""
        return Health(
            is_alive=time.monotonic() - self._last_tick < _HANGS,
            is_ready=self._pull.is_ready and not self._stop.is_set(),
            figures=asdict(self.stats()),
        )

    def stop(self) -> None:
        """Finish what is in hand and end; called again, give it back and end."""
        if self._stop.is_set():
            self._hurry.set()
        self._stop.set()
        self._in_hand.tell()

    async def run(self) -> None:
        """Work until `stop`."""
        self._loop = asyncio.get_running_loop()
        self._scoring.start()
        pulling = asyncio.create_task(self._pull.run(self._wait_for_room))
        signs = asyncio.create_task(self._keep_in_hand())
        stopped = asyncio.create_task(self._stop.wait())
        try:
            # The first two only end by a mistake of ours; then all ends, and shows what it was.
            await asyncio.wait([pulling, signs, stopped], return_when=asyncio.FIRST_COMPLETED)
            self._stop.set()
            await self._finish(pulling)
        finally:
            for task in (pulling, signs, stopped):
                task.cancel()
            await self._let_go()
        for task in (pulling, signs):
            if not task.cancelled() and task.done() and (error := task.exception()) is not None:
                raise error

    async def _take(self, message: Msg) -> None:
        """Bring a message that has arrived on its way; never raises."""
        arrival = Arrival.of(message)
        if self._stop.is_set():
            self._settle_message(arrival, Verdict(ending="give_back", reason=STOPPED))
            return
        again = self._in_hand.with_sequence(arrival.sequence)
        if again is not None:  # the broker had not heard of us for a while
            again.arrival = arrival
            return
        if arrival.number > self._options.max_deliveries:
            detail = f"delivered {arrival.number} times, and no worker came to an end with it"
            self._settle_message(arrival, Verdict(ending="put_aside", reason=DELIVERIES_USED_UP, detail=detail))
            return
        try:
            record = record_of(Message(payload=arrival.payload, headers=arrival.headers))
        except Exception as error:  # noqa: BLE001 - a poison message must not end the worker, whatever is wrong with it
            detail = str(error) if isinstance(error, RecordError) else type(error).__name__
            self._settle_message(arrival, Verdict(ending="put_aside", reason=INVALID_RECORD, detail=detail))
            return
        delivery = Delivery(arrival=arrival, record=record, taken_at=time.monotonic())
        self._in_hand.add(delivery)
        self._scoring.score(delivery)

    def _ended_elsewhere(self, delivery: Delivery, verdict: Verdict) -> None:
        """From the threads of the engine and of the export line."""
        if self._loop is None:  # nothing is scored before `run`
            return
        with suppress(RuntimeError):  # the loop is closed; the broker will deliver it again
            self._loop.call_soon_threadsafe(self._ended, delivery, verdict)

    def _ended(self, delivery: Delivery, verdict: Verdict) -> None:
        if self._in_hand.with_sequence(delivery.arrival.sequence) is not delivery or delivery.is_settling:
            return  # it was given back in the meantime
        delivery.is_settling = True
        self._count_outages(verdict)
        is_last = delivery.arrival.number >= self._options.max_deliveries
        if verdict.ending == "give_back" and verdict.reason != STOPPED and is_last:
            verdict = Verdict(ending="put_aside", reason=verdict.reason, detail=verdict.detail)
        self._begin(self._settle(delivery, verdict))

    def _count_outages(self, verdict: Verdict) -> None:
        if verdict.reason != JUDGE_OUTAGE:
            self._outages = 0
            return
        self._outages += 1
        # A few records at once fail of the same outage; it gets longer with the time, not with their number.
        if time.monotonic() >= self._pause_until:
            pause = _OUTAGE_PAUSES[min(self._outages, len(_OUTAGE_PAUSES)) - 1]
            self._pause_until = time.monotonic() + pause

    def _settle_message(self, arrival: Arrival, verdict: Verdict) -> None:
        self._in_hand.settling += 1
        self._begin(self._settle_bare(arrival, verdict))

    async def _settle_bare(self, arrival: Arrival, verdict: Verdict) -> None:
        try:
            await self._settlement.settle(arrival, verdict)
        finally:
            self._in_hand.settling -= 1
            self._in_hand.tell()

    async def _settle(self, delivery: Delivery, verdict: Verdict) -> None:
        try:
            await self._settlement.settle(delivery.arrival, verdict)
        finally:
            self._in_hand.remove(delivery)

    def _begin(self, settling: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(settling)
        self._settling.add(task)
        task.add_done_callback(self._settling.discard)

    def _room(self) -> int:
        if self._stop.is_set() or time.monotonic() < self._pause_until:
            return 0
        to_score = self._options.concurrency - self._in_hand.being_scored()
        return min(to_score, self._options.room - len(self._in_hand))

    async def _wait_for_room(self) -> None:
        await self._in_hand.changed(_TICK / 4)

    async def _keep_in_hand(self) -> None:
        """Tell the broker of everything in hand, and look for what the engine has lost."""
        last_signs = time.monotonic()
        while True:
            self._last_tick = time.monotonic()
            await asyncio.sleep(min(_TICK, self._options.ack_wait / 6))
            now = time.monotonic()
            for delivery in self._in_hand.all():
                if delivery.verdict is None and now - delivery.taken_at > self._time_limit:
                    self._ended(delivery, Verdict(ending="give_back", reason=LOST))
            if now - last_signs >= self._options.ack_wait / 3 and self._connection.is_up:
                last_signs = now
                for delivery in self._in_hand.all():
                    with suppress(Exception):  # the connection is lost at this moment
                        await self._settlement.give_a_sign(delivery.arrival)

    async def _finish(self, pulling: asyncio.Task[None]) -> None:
        """Let what is in hand end within the grace."""
        hurried = asyncio.create_task(self._hurry.wait())
        finished = asyncio.create_task(self._until_empty(pulling))
        await asyncio.wait([hurried, finished], timeout=self._options.grace, return_when=asyncio.FIRST_COMPLETED)
        for task in (hurried, finished):
            task.cancel()

    async def _until_empty(self, pulling: asyncio.Task[None]) -> None:
        await self._pull.stop()
        await asyncio.wait([pulling])
        while len(self._in_hand):
            await self._in_hand.changed(_TICK)

    async def _let_go(self) -> None:
        self._settlement.is_stopping = True
        await asyncio.to_thread(self._scoring.stop_exporting)
        for delivery in self._in_hand.all():
            self._ended(delivery, Verdict(ending="give_back", reason=STOPPED))
        if self._settling:
            _, left = await asyncio.wait(self._settling, timeout=_LAST_WORDS)
            for task in left:
                task.cancel()
        await asyncio.to_thread(self._scoring.shutdown)
        with suppress(Exception):  # the broker may be away
            await asyncio.wait_for(self._connection.close(), _LAST_WORDS)
