"""One worker: its loop, and what becomes of each message.

Guarantees:
- A message is acknowledged only after its scores have been exported. Whatever happens before that, the broker delivers it
  again, to this worker or to another.
- A message that is no record, or that was delivered too often, is put aside with its reason. None stops the worker, nor keeps
  its loop from turning: messages are read in a thread, one at a time, and within limits.
- What is in hand is bounded, in number and in bytes, and the broker hears of it three times in `ack_wait`, however long a judge or a backend takes.
- Where the stream is replaced by another of its name, nothing that is in hand is acknowledged in the new one by mistake.
- While the judge's service is away, records are taken up one at a time and ever more rarely, so that they do not use up their
  deliveries.
- `stop` takes nothing new, finishes what is in hand within `grace` seconds, and gives the rest back at once.

The loop belongs to the thread that calls `run`; `stop` has to be called in it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from ragspan.exceptions import RecordError
from ragspan.record_json import MAX_JSON
from ragspan.throttled_log import ThrottledLog
from ragspan_nats.access import BrokerAccess
from ragspan_nats.connection import BrokerConnection
from ragspan_nats.message import Message, record_of, unpacked
from ragspan_nats.streams import StreamLimits, StreamNames
from ragspan_nats.worker.counts import Counts, WorkerStats
from ragspan_nats.worker.delivery import Arrival, Delivery, Verdict
from ragspan_nats.worker.health import Health
from ragspan_nats.worker.in_hand import InHand
from ragspan_nats.worker.leftovers import Leftovers
from ragspan_nats.worker.options import WorkerOptions
from ragspan_nats.worker.outages import Outages
from ragspan_nats.worker.pull import Pull
from ragspan_nats.worker.scoring import FleetScoring
from ragspan_nats.worker.settlement import Settlement
from ragspan_nats.worker.signs import Signs

if TYPE_CHECKING:
    from nats.aio.msg import Msg
    from opentelemetry.metrics import MeterProvider

    from ragspan.config import Settings
    from ragspan.records import RagRecord
from ragspan.redaction import Redact, RedactionError, redact_from, redacted

_TICK = 1.0  # seconds between two looks at what is in hand
_HANGS = 10.0  # seconds without a tick after which the loop counts as hanging
_LOST_AFTER = 60.0  # seconds over the metrics' time limit, when the engine must have lost a record
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
        self._redact = redact_from(settings.redact)
        self._log = ThrottledLog()
        self._in_hand = InHand()
        self._scoring = FleetScoring(
            settings,
            options,
            self._in_hand,
            on_scored=self._scored_elsewhere,
            on_end=self._ended_elsewhere,
            log=self._log,
        )
        self._time_limit = settings.metric_timeout + _LOST_AFTER
        self._counts = Counts(self._scoring.meter_provider, lambda: len(self._in_hand))
        self._connection = BrokerConnection(access, name="ragspan worker", log=self._log)
        limits = limits or StreamLimits()
        self._settlement = Settlement(self._connection, names, limits=limits, counts=self._counts, log=self._log)
        self._signs = Signs(self._connection, names, self._in_hand, ack_wait=options.ack_wait, log=self._log)
        self._leftovers = Leftovers(self._connection, names, log=self._log)
        self._pull = Pull(
            self._connection,
            names,
            limits=limits,
            ack_wait=options.ack_wait,
            max_ack_pending=options.max_ack_pending,
            room=self._room,
            on_message=self._take,
            on_new_stream=self._leave_old_stream,
            log=self._log,
        )
        self._loop: asyncio.AbstractEventLoop | None = None
        self._settling: set[asyncio.Task[None]] = set()
        self._too_late: list[Arrival] = []
        self._stop = asyncio.Event()
        self._hurry = asyncio.Event()
        self._outages = Outages()
        self._last_tick = time.monotonic()

    @property
    def meter_provider(self) -> MeterProvider:
        """Where it counts; native writers count with the global one, which this should be."""
        return self._scoring.meter_provider

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
        beside = [asyncio.create_task(work) for work in (self._signs.run(), self._leftovers.run(), self._watch())]
        stopped = asyncio.create_task(self._stop.wait())
        try:
            # All but the last only end by a mistake of ours; then all ends, and shows what it was.
            await asyncio.wait([pulling, *beside, stopped], return_when=asyncio.FIRST_COMPLETED)
            self._stop.set()
            await self._pull.stop()
            pulling.cancel()  # it may wait for a broker that is away
            await self._finish()
        finally:
            for task in (pulling, *beside, stopped):
                task.cancel()
            await self._let_go()
        for task in (pulling, *beside):
            if task.done() and not task.cancelled() and (error := task.exception()) is not None:
                raise error

    async def _take(self, message: Msg) -> None:
        """Bring a message that has arrived on its way; never raises."""
        arrival = Arrival.of(message)
        if self._is_no_new_work(arrival):
            return
        if arrival.number > self._options.max_deliveries:
            detail = f"delivered {arrival.number} times, and no worker came to an end with it"
            self._settle_message(arrival, Verdict(ending="put_aside", reason="deliveries_used_up", detail=detail))
            return
        try:
            record, size = await asyncio.to_thread(_read, arrival, self._redact)
        except RedactionError as error:
            self._settle_message(arrival, Verdict(ending="put_aside", reason="redaction_failed", detail=str(error)))
            return
        except Exception as error:  # noqa: BLE001 - a poison message must not end the worker, whatever is wrong with it
            detail = str(error) if isinstance(error, RecordError) else type(error).__name__
            self._settle_message(arrival, Verdict(ending="put_aside", reason="invalid_record", detail=detail))
            return
        if self._is_no_new_work(arrival):  # as of now: reading it took a moment
            return
        delivery = Delivery(arrival=arrival, record=record, size=size, taken_at=time.monotonic())
        self._in_hand.add(delivery)
        self._scoring.score(delivery)

    def _is_no_new_work(self, arrival: Arrival) -> bool:
        """Whether it came too late, or another delivery of it is in hand."""
        if self._stop.is_set():
            self._too_late.append(arrival)
            return True
        again = self._in_hand.of_message(arrival)
        if again is None or again.is_given_back:
            return False
        again.arrival = replace(
            arrival, number=max(arrival.number, again.arrival.number)
        )  # we were not heard for a while
        return True

    def _scored_elsewhere(self) -> None:
        """From the engine's thread: there is room for another record, though this one is not exported yet."""
        self._call_in_loop(self._in_hand.tell)

    def _ended_elsewhere(self, delivery: Delivery, verdict: Verdict) -> None:
        """From the threads of the engine, of the export line and of the native scores."""
        self._call_in_loop(self._ended, delivery, verdict)

    def _call_in_loop(self, function: Callable[..., None], *arguments: object) -> None:
        if self._loop is None:  # nothing is scored before `run`
            return
        with suppress(RuntimeError):  # the loop is closed; the broker will deliver again what is left
            self._loop.call_soon_threadsafe(function, *arguments)

    def _ended(self, delivery: Delivery, verdict: Verdict) -> None:
        if self._in_hand.of_message(delivery.arrival) is not delivery or delivery.is_settling:
            return  # it was given back in the meantime
        delivery.is_settling = True
        self._outages.note(verdict)
        is_last = delivery.arrival.number >= self._options.max_deliveries
        if verdict.ending == "give_back" and verdict.reason != "stopped" and is_last:
            verdict = Verdict(ending="put_aside", reason=verdict.reason, detail=verdict.detail)
        if verdict.ending == "give_back":
            delivery.is_given_back = True
            self._in_hand.withdraw(delivery)
        self._begin(self._settle(delivery, verdict))

    def _settle_message(self, arrival: Arrival, verdict: Verdict) -> None:
        self._in_hand.settling += 1
        self._in_hand.settling_bytes += len(arrival.payload)
        self._begin(self._settle_bare(arrival, verdict))

    async def _settle_bare(self, arrival: Arrival, verdict: Verdict) -> None:
        try:
            await self._settlement.settle(arrival, verdict)
        finally:
            self._in_hand.settling -= 1
            self._in_hand.settling_bytes -= len(arrival.payload)
            self._in_hand.tell()

    async def _settle(self, delivery: Delivery, verdict: Verdict) -> None:
        try:
            if not delivery.is_orphan:
                await self._settlement.settle(delivery.arrival, verdict)
        finally:
            self._in_hand.remove(delivery)

    def _begin(self, settling: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(settling)
        self._settling.add(task)
        task.add_done_callback(self._settling.discard)

    def _room(self) -> int:
        if self._stop.is_set():
            return 0
        to_score = self._outages.limit(self._options.concurrency) - self._in_hand.being_scored()
        to_hold = (
            self._options.max_in_hand_bytes - self._in_hand.size()
        ) // MAX_JSON  # as if all were as large as can be
        return min(to_score, to_hold, self._options.room - len(self._in_hand))

    async def _wait_for_room(self) -> None:
        await self._in_hand.changed(_TICK / 4)

    def _leave_old_stream(self) -> None:
        """What is in hand is scored all the same; a word about it would end others, with the same places in the new stream."""
        for delivery in self._in_hand.all():
            delivery.is_orphan = True
        for task in self._settling:
            task.cancel()

    async def _watch(self) -> None:
        """Note that the loop turns, and look for what the engine has lost."""
        while True:
            self._last_tick = time.monotonic()
            await asyncio.sleep(_TICK)
            for delivery in self._in_hand.all():
                if delivery.verdict is None and time.monotonic() - delivery.taken_at > self._time_limit:
                    self._ended(delivery, Verdict(ending="give_back", reason="lost"))

    async def _finish(self) -> None:
        """Let what is in hand end within the grace."""
        self._give_back_what_came_too_late()
        hurried = asyncio.create_task(self._hurry.wait())
        finished = asyncio.create_task(self._until_empty())
        await asyncio.wait([hurried, finished], timeout=self._options.grace, return_when=asyncio.FIRST_COMPLETED)
        for task in (hurried, finished):
            task.cancel()

    async def _until_empty(self) -> None:
        while len(self._in_hand):
            await self._in_hand.changed(_TICK)

    def _give_back_what_came_too_late(self) -> None:
        late, self._too_late = self._too_late, []
        for arrival in late:
            self._settle_message(arrival, Verdict(ending="give_back", reason="stopped"))

    async def _let_go(self) -> None:
        """Give back what has not ended, first of all what is not scored yet: others can begin with that at once."""
        self._settlement.is_stopping = True
        self._give_back_what_came_too_late()
        for delivery in self._in_hand.all():
            if delivery.verdict is None:
                self._ended(delivery, Verdict(ending="give_back", reason="stopped"))
        await asyncio.to_thread(self._scoring.stop_exporting)
        for delivery in self._in_hand.all():
            self._ended(delivery, Verdict(ending="give_back", reason="stopped"))
        if self._settling:
            _, left = await asyncio.wait(self._settling, timeout=_LAST_WORDS)
            for task in left:
                task.cancel()
        await asyncio.to_thread(self._scoring.shutdown)
        with suppress(Exception):  # the broker may be away
            await asyncio.wait_for(self._connection.close(), _LAST_WORDS)


def _read(arrival: Arrival, redact: Redact | None) -> tuple[RagRecord, int]:
    """The record of a message, redacted, and its size when unpacked.

    Raises:
        RecordError: it holds none.
        RedactionError: it cannot be redacted.
    """
    message = unpacked(Message(payload=arrival.payload, headers=arrival.headers))
    record = record_of(message)
    return record if redact is None else redacted(record, redact), len(message.payload)
