"""One worker: a coroutine for each message.

    receive ─► read ─► engine.score ─► spans exported ─► native scores written ─► acknowledged
                 │           │                │                   │
                 └───────────┴────────────────┴───────────────────┴─► or given back, or put aside as a dead letter

As many tasks as records are scored at a time receive messages. A task receives the next one as soon as its record is scored; the
export and the acknowledgement go on beside it.

Guarantees:
- A message is acknowledged only after its scores have been exported. Whatever happens before that, the broker delivers it
  again, to this worker or to another.
- A message that is no record, or that was delivered too often, is put aside with its reason. None stops the worker, nor keeps
  its loop from turning: messages are read in a thread, one at a time, and within limits.
- What is in flight is bounded, in number and in bytes, and the broker hears of it three times in `ack_wait`, however long a
  judge or a backend takes.
- Where the stream is replaced by another of its name, nothing that is in flight is acknowledged in the new one by mistake.
- While the judge's service is away, records are taken up one at a time and ever more rarely, so that they do not use up their
  deliveries.
- `stop` takes nothing new, finishes what is in flight within `grace` seconds, and gives the rest back at once.

The loop belongs to the thread that calls `run`; `stop` has to be called in it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection
from contextlib import suppress
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from ragspan.exceptions import RecordError
from ragspan.record_json import MAX_JSON
from ragspan.redaction import Redact, RedactionError, redact_from, redacted
from ragspan.throttled_log import ThrottledLog
from ragspan_nats.access import BrokerAccess
from ragspan_nats.connection import BrokerConnection
from ragspan_nats.message import Message, record_of, unpacked
from ragspan_nats.streams import StreamLimits, StreamNames
from ragspan_nats.worker.consumer import Consumer
from ragspan_nats.worker.counts import Counts, WorkerStats
from ragspan_nats.worker.delivery import STOPPED, Arrival, Delivery, JudgeBackoff, Verdict
from ragspan_nats.worker.health import Health
from ragspan_nats.worker.options import WorkerOptions
from ragspan_nats.worker.scoring import FleetScoring

if TYPE_CHECKING:
    from nats.aio.msg import Msg
    from opentelemetry.metrics import MeterProvider

    from ragspan.config import Settings
    from ragspan.records import RagRecord

_TICK = 1.0  # seconds between two signs that the loop turns
_LOOK = 0.25  # seconds until a task that waits for room looks again, for an outage of the judge may be over
_TASKS_A_REQUEST = 16  # for each request that may be with the broker at a time
_HANGS = 10.0  # seconds without a tick after which the loop counts as hanging
_HEARTBEAT = 5.0  # seconds between two heartbeats, at most; and for each
_RECOVERY = 10.0  # seconds between two looks for what the broker has lost sight of, and for each
_LAST_WORDS = 5.0  # seconds for giving back what is left
_WORDS = {"nak": "given back", "dead_letter": "put among the dead letters"}


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
        self._scoring = FleetScoring(settings, options, log=self._log)
        self._in_flight: dict[tuple[int, float], Delivery] = {}
        self._counts = Counts(self._scoring.meter_provider, lambda: len(self._in_flight))
        self._connection = BrokerConnection(access, name="ragspan worker", log=self._log)
        self._consumer = Consumer(
            self._connection,
            names,
            limits=limits or StreamLimits(),
            options=options,
            on_new_stream=self._leave_old_stream,
            log=self._log,
        )
        self._judge_backoff = JudgeBackoff()
        # Few at a time, for the broker serves requests in their order: or one worker would get a burst, and others nothing.
        self._turns = asyncio.Semaphore(max(1, options.concurrency // _TASKS_A_REQUEST))
        self._receiving = 0
        self._deliveries: set[asyncio.Task[None]] = set()
        self._reading = asyncio.Lock()
        self._changed = asyncio.Event()
        self._stop = asyncio.Event()
        self._hurry = asyncio.Event()
        self._requests_are_over = asyncio.Event()
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
            is_ready=self._consumer.is_ready and not self._stop.is_set(),
            figures=asdict(self.stats()),
        )

    def stop(self) -> None:
        """Finish what is in flight and end; called again, give it back and end."""
        if self._stop.is_set():
            self._hurry.set()
        self._stop.set()

    async def run(self) -> None:
        """Work until `stop`."""
        beside = [
            asyncio.create_task(work)
            for work in (self._scoring.run(), self._send_heartbeats(), self._recover_orphans(), self._tick())
        ]
        takers = [asyncio.create_task(self._take_messages()) for _ in range(self._options.concurrency)]
        stopped = asyncio.create_task(self._stop.wait())
        try:
            # All but the last only end by a mistake of ours; then all ends, and shows what it was.
            await asyncio.wait([*beside, *takers, stopped], return_when=asyncio.FIRST_COMPLETED)
            self._stop.set()
            while self._receiving and self._consumer.has_requests:
                await self._until_changed()  # what was asked for arrives still
            self._requests_are_over.set()
            await self._finish()
        finally:
            self._requests_are_over.set()
            for taker in takers:
                taker.cancel()
            await self._nak_the_rest()
            for task in (*beside, stopped):
                task.cancel()
            await self._scoring.shutdown()
            with suppress(Exception):  # the broker may be away
                await asyncio.wait_for(self._connection.close(), _LAST_WORDS)
        for task in (*beside, *takers):
            if task.done() and not task.cancelled() and (error := task.exception()) is not None:
                raise error

    async def _take_messages(self) -> None:
        """Take one message after the other, each as soon as the one before is scored."""
        while not self._stop.is_set():
            message = None
            async with self._turns:
                if self._may_receive():
                    message = await self._receive()
                else:
                    await self._until_changed()
            if message is not None:
                await self._begin(Arrival.of(message))

    async def _receive(self) -> Msg | None:
        self._receiving += 1
        try:
            return await self._consumer.receive()
        finally:
            self._receiving -= 1
            self._changed.set()

    async def _until_changed(self) -> None:
        """Wait until a message has come or a delivery has ended, for a moment at most."""
        self._changed.clear()
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._changed.wait(), _LOOK)

    def _may_receive(self) -> bool:
        """Whether there is room for another record, if it was as large as can be."""
        wanted = self._receiving + 1
        being_scored = sum(not delivery.has_left_judge.is_set() for delivery in self._in_flight.values())
        size = sum(delivery.size for delivery in self._in_flight.values())
        return (
            not self._stop.is_set()
            and being_scored + wanted <= self._judge_backoff.limit(self._options.concurrency)
            and len(self._in_flight) + wanted <= self._options.room
            and size + wanted * MAX_JSON <= self._options.max_in_flight_bytes
        )

    async def _begin(self, arrival: Arrival) -> None:
        """Bring a message on its way; returns when it is scored, or will not be."""
        before = self._in_flight.get(arrival.message)
        if before is not None and not before.is_nacked:  # the broker did not hear of us for a while
            before.arrival = replace(arrival, number=max(arrival.number, before.arrival.number))
            return
        delivery = self._in_flight[arrival.message] = Delivery(arrival)
        delivery.task = asyncio.create_task(self._deliver(delivery))
        self._deliveries.add(delivery.task)
        delivery.task.add_done_callback(self._deliveries.discard)
        await delivery.has_left_judge.wait()

    async def _deliver(self, delivery: Delivery) -> None:
        """The way of one message from its arrival to its end with the broker."""
        try:
            verdict = await self._verdict_on(delivery)
        except asyncio.CancelledError:
            verdict = STOPPED
        except Exception as error:  # noqa: BLE001 - a mistake of ours: one record's must not end the worker
            self._log.trouble("worker", "a record could not be scored: %s", type(error).__name__)
            verdict = Verdict(ending="nak", reason="lost")
        self._judge_backoff.note(verdict)
        is_last = delivery.arrival.number >= self._options.max_deliveries
        if verdict.ending == "nak" and verdict.reason != "stopped" and is_last:
            verdict = replace(verdict, ending="dead_letter")
        delivery.is_ending, delivery.is_nacked = True, verdict.ending == "nak"
        delivery.has_left_judge.set()
        self._changed.set()
        try:
            if verdict is STOPPED:
                await self._requests_are_over.wait()  # or the broker would deliver it to this worker again
            if not delivery.is_orphan:
                self._count(await self._consumer.end(delivery.arrival, verdict), asked=verdict)
        finally:
            if (
                self._in_flight.get(delivery.arrival.message) is delivery
            ):  # and not one that came after it was given back
                del self._in_flight[delivery.arrival.message]
            self._changed.set()

    async def _verdict_on(self, delivery: Delivery) -> Verdict:
        """Read a message, score its record, and export the scores; how the delivery ends."""
        arrival = delivery.arrival
        if self._stop.is_set():
            return STOPPED
        if arrival.number > self._options.max_deliveries:
            detail = f"delivered {arrival.number} times, and no worker came to an end with it"
            return Verdict(ending="dead_letter", reason="deliveries_used_up", detail=detail)
        try:
            async with self._reading:
                record, delivery.size = await asyncio.to_thread(_read, arrival, self._redact)
        except RedactionError as error:
            return Verdict(ending="dead_letter", reason="redaction_failed", detail=str(error))
        except Exception as error:  # noqa: BLE001 - a poison message, whatever is wrong with it
            detail = str(error) if isinstance(error, RecordError) else type(error).__name__
            return Verdict(ending="dead_letter", reason="invalid_record", detail=detail)
        self._changed.set()  # it takes less than the most that was reserved
        if self._stop.is_set():  # as of now: reading it took a moment
            return STOPPED
        return await self._scoring.score(delivery, record)

    def _count(self, verdict: Verdict, *, asked: Verdict) -> None:
        for one in dict.fromkeys((asked, verdict)):
            if one.reason:
                self._log.trouble(one.reason, "a record was %s: %s", _WORDS[one.ending], one.reason)
        self._counts.ended(verdict)

    def _leave_old_stream(self) -> None:
        """What is in flight is scored all the same; a word about it would end others, with the same places in the new stream."""
        for delivery in self._in_flight.values():
            delivery.is_orphan = True
            if delivery.is_ending and delivery.task is not None:
                delivery.task.cancel()

    async def _tick(self) -> None:
        """Note that the loop turns."""
        while True:
            self._last_tick = time.monotonic()
            await asyncio.sleep(_TICK)

    async def _send_heartbeats(self) -> None:
        """Tell the broker of what is in flight, so that it gives none of it to another worker."""
        pause = min(self._options.ack_wait / 3, _HEARTBEAT)
        while True:
            await asyncio.sleep(pause)
            if not self._connection.is_up:
                continue
            try:
                wanted = await asyncio.wait_for(self._consumer.send_heartbeat(self._alive), _HEARTBEAT)
                pause = min(wanted, _HEARTBEAT)
            except Exception as error:  # noqa: BLE001 - the connection is lost at this moment, or the consumer is gone
                self._log.trouble("heartbeat", "the broker could not be told of records: %s", type(error).__name__)

    def _alive(self) -> list[Arrival]:
        """Those of which the broker should hear. One that is given back would wait for `ack_wait` in place of its delay."""
        return [one.arrival for one in self._in_flight.values() if not (one.is_nacked or one.is_orphan)]

    async def _recover_orphans(self) -> None:
        while True:
            await asyncio.sleep(_RECOVERY)
            if not self._connection.is_up:
                continue
            try:
                await asyncio.wait_for(self._consumer.recover_orphans(), _RECOVERY)
            except Exception as error:  # noqa: BLE001 - the broker is away, or does not let us
                self._log.trouble("orphans", "the stream could not be looked through: %s", type(error).__name__)

    async def _finish(self) -> None:
        """Let what is in flight end within the grace."""
        hurried = asyncio.create_task(self._hurry.wait())
        finished = asyncio.create_task(_all_done(self._deliveries))
        await asyncio.wait(
            [hurried, finished], timeout=self._options.drain_timeout, return_when=asyncio.FIRST_COMPLETED
        )
        for task in (hurried, finished):
            task.cancel()

    async def _nak_the_rest(self) -> None:
        """Give back what has not ended, first of all what is not scored yet: others can begin with that at once."""
        self._consumer.is_stopping = True
        self._cancel(one for one in self._in_flight.values() if not one.has_left_judge.is_set())
        await self._scoring.stop_exporting()
        self._cancel(one for one in self._in_flight.values() if not one.is_ending)
        if self._deliveries:
            _, left = await asyncio.wait(self._deliveries, timeout=_LAST_WORDS)
            for task in left:
                task.cancel()

    def _cancel(self, deliveries: Any) -> None:
        for delivery in deliveries:
            if delivery.task is not None:
                delivery.task.cancel()


async def _all_done(tasks: Collection[asyncio.Task[None]]) -> None:
    while tasks:
        await asyncio.wait(list(tasks))


def _read(arrival: Arrival, redact: Redact | None) -> tuple[RagRecord, int]:
    """The record of a message, redacted, and its size when unpacked.

    Raises:
        RecordError: it holds none.
        RedactionError: it cannot be redacted.
    """
    message = unpacked(Message(payload=arrival.payload, headers=arrival.headers))
    record = record_of(message)
    return record if redact is None else redacted(record, redact), len(message.payload)
