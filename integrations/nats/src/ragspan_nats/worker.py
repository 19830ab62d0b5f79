"""One worker: a coroutine for each message, from its arrival to its end with the broker.

While the judge or the exporter is away, records are taken one at a time and ever more rarely, so that they keep their deliveries.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, get_args

from opentelemetry.metrics import Observation

from ragspan.backoff import Backoff
from ragspan.config import Settings
from ragspan.engine.redaction import RedactionError, redact_from, redacted
from ragspan.engine.threads import Deadline
from ragspan.exceptions import RecordError
from ragspan.outcomes import ScoredRecord
from ragspan.records import MAX_JSON, RagRecord
from ragspan.telemetry import semconv
from ragspan.telemetry.providers import meter_of
from ragspan.throttled_log import ThrottledLog
from ragspan_nats.consumer import LONGEST_REQUEST, STOPPED, Consumer, Delivery, Disposition, Ending
from ragspan_nats.message import json_in
from ragspan_nats.scoring import FleetScoring
from ragspan_nats.settings import BrokerAccess, Stream, WorkerOptions

_LOOK = 0.25  # seconds until the next look for room: the judge's pause may be over
_FINAL_WAIT = 5.0  # seconds for giving back what is left
_CANCEL_AGAIN = 1.0  # seconds
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 30.0  # seconds, while the judge is away
_MAX_IN_FLIGHT = 32 * MAX_JSON  # bytes of all records in flight


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkerStats:
    """How a worker is, and what it has done so far, in deliveries."""

    ready: bool = False
    """Records can come."""
    in_flight: int = 0
    acknowledged: int = 0
    """Scored, exported, and out of the stream."""
    nacked: dict[str, int] = field(default_factory=dict)
    """Given back to the broker, by reason."""
    dead_lettered: dict[str, int] = field(default_factory=dict)
    """By reason."""


class Worker:
    """Scores the records of a stream (`ragspan` if None), until it is stopped. The loop belongs to the thread that calls `run`.

    `settings` are of the engine and its emitters; `OTEL_*` variables say where to export.

    Raises:
        ConfigurationError: no exporter is configured, or a setting is wrong.
    """

    def __init__(
        self, access: BrokerAccess, settings: Settings, *, options: WorkerOptions, stream: Stream | None = None
    ) -> None:
        self._options = options
        self._redact = redact_from(settings.redact)
        self._log = ThrottledLog()
        self._scoring = FleetScoring(settings, options, log=self._log)
        self._consumer = Consumer(access, stream or Stream(), options, take=self._begin, log=self._log)
        self._in_flight: dict[Delivery, asyncio.Task[None]] = {}
        self._ended: dict[Ending, Counter[str]] = {ending: Counter() for ending in get_args(Ending)}
        """Deliveries by their end and its reason."""
        self._judge = Backoff(first=_FIRST_PAUSE, longest=_LONGEST_PAUSE)
        self._reading = asyncio.Lock()
        self._changed = asyncio.Event()
        self._stop = asyncio.Event()
        self._is_hurried = False
        self._requests_are_over = asyncio.Event()
        self.meter_provider = self._scoring.meter_provider
        """Where it counts. Native writers count with the global one, which this should be."""
        meter = meter_of(self.meter_provider)
        self._counter = meter.create_counter(
            semconv.METRIC_FLEET_DELIVERIES,
            unit="{delivery}",
            description="Deliveries of records to workers that have ended: acknowledged, given back, or put aside.",
        )
        meter.create_observable_gauge(
            semconv.METRIC_FLEET_IN_FLIGHT,
            [lambda _: [Observation(len(self._in_flight))]],
            unit="{record}",
            description="Records that this worker has in flight.",
        )

    def stats(self) -> WorkerStats:
        """How it is, and what it has done so far. May be called from any thread."""
        return WorkerStats(
            ready=self._consumer.is_ready and not self._stop.is_set(),
            in_flight=len(self._in_flight),
            acknowledged=self._ended["acknowledged"].total(),
            nacked=dict(self._ended["nacked"]),
            dead_lettered=dict(self._ended["dead_lettered"]),
        )

    def stop(self) -> None:
        """In the worker's loop: finish what is in flight and end. The second call gives it back and ends."""
        self._is_hurried = self._stop.is_set()
        self._stop.set()
        self._changed.set()

    async def run(self) -> None:
        """Work until `stop`."""
        stopped = asyncio.create_task(self._stop.wait())
        receiving = asyncio.create_task(self._receive())
        heartbeat = asyncio.create_task(self._consumer.send_heartbeats(self._in_flight))
        try:
            # The first ends by a defect only.
            await asyncio.wait([receiving, stopped], return_when=asyncio.FIRST_COMPLETED)
            self._stop.set()
            await asyncio.wait([receiving], timeout=LONGEST_REQUEST)  # requested messages still arrive
            self._requests_are_over.set()
            deadline = Deadline(self._options.drain_timeout)
            while self._in_flight and deadline.remaining and not self._is_hurried:
                await self._change(deadline.remaining)
        finally:
            self._stop.set()
            self._requests_are_over.set()
            for delivery, task in self._in_flight.items():
                if delivery.disposition is None:
                    task.cancel()  # which gives it back
            if self._in_flight:
                await asyncio.wait(self._in_flight.values(), timeout=_FINAL_WAIT)
            left: set[asyncio.Task[Any]] = {*self._in_flight.values(), receiving, heartbeat, stopped}
            while left:  # before Python 3.12 `wait_for` forgets a cancellation that comes with its answer
                for task in left:
                    task.cancel()
                _, left = await asyncio.wait(left, timeout=_CANCEL_AGAIN)
            await self._scoring.shutdown()
            await self._consumer.close()
        if not receiving.cancelled():
            receiving.result()  # raises the defect

    async def _receive(self) -> None:
        """Request as many messages as there is room for if each has the largest size, until the worker is stopped."""
        pauses = (self._judge, self._scoring.pauses)
        while not self._stop.is_set():
            room = 0
            if not any(one.remaining for one in pauses):
                at_a_time = 1 if any(one.refusals for one in pauses) else self._options.concurrency
                room = min(
                    at_a_time - sum(one.is_judging for one in self._in_flight),
                    max(256, 4 * self._options.concurrency) - len(self._in_flight),  # scores wait for their export
                    (_MAX_IN_FLIGHT - sum(one.size for one in self._in_flight)) // MAX_JSON,
                )
            if room > 0:
                await self._consumer.request(room)
            else:
                await self._change(_LOOK)

    async def _change(self, timeout: float) -> None:
        """Wait until a delivery moves on or the worker is stopped, for `timeout` seconds at most."""
        self._changed.clear()
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._changed.wait(), timeout)

    def _begin(self, delivery: Delivery) -> None:
        """Start the work on a message."""
        for one in self._in_flight:
            if one.sequence == delivery.sequence and not one.is_nacked:  # the broker got no heartbeat for a while
                one.reply, one.number = delivery.reply, max(delivery.number, one.number)
                return
        if self._scoring.pauses.refusals:  # the next one waits for what becomes of this one, or for a longer pause
            self._scoring.pauses.refused()
        self._in_flight[delivery] = asyncio.create_task(self._deliver(delivery))

    async def _deliver(self, delivery: Delivery) -> None:
        """Work on one message, from its arrival to its end with the broker, whatever goes wrong."""
        try:
            try:
                disposition = await self._disposition_of(delivery)
            except asyncio.CancelledError:
                disposition = STOPPED
            except Exception as error:  # noqa: BLE001 - a defect of ours at one record must not end the worker
                self._log.report("worker", "a record could not be scored: %s", type(error).__name__)
                disposition = Disposition(ending="nacked", reason="not_scored")
            self._scoring.abandon(delivery)
            if disposition.ending == "acknowledged":
                self._judge.succeeded()
            elif disposition.reason == "judge_outage":
                self._judge.refused()
            is_last = delivery.number >= self._options.max_deliveries and disposition is not STOPPED
            if disposition.ending == "nacked" and is_last:
                disposition = replace(disposition, ending="dead_lettered")
            delivery.is_judging, delivery.disposition = False, disposition
            self._changed.set()
            if disposition is STOPPED:
                await self._requests_are_over.wait()  # else the broker would deliver it to this worker again
            ended = await self._consumer.end(delivery, disposition)
            about: dict[str, str] = {semconv.RESULT: ended.ending}
            if ended.reason:
                self._log.report(ended.reason, "a record was %s: %s", ended.ending, ended.reason)
                about[semconv.REASON] = ended.reason
            self._ended[ended.ending][ended.reason or ""] += 1
            self._counter.add(1, about)
        finally:
            del self._in_flight[delivery]
            self._changed.set()

    def _read(self, delivery: Delivery) -> tuple[int, RagRecord]:
        """The bytes of a record's JSON, and the record, redacted."""
        text = json_in(delivery.payload, delivery.headers)
        record = RagRecord.from_json(text)
        return len(text), record if self._redact is None else redacted(record, self._redact)

    async def _disposition_of(self, delivery: Delivery) -> Disposition:
        """Read a message, score its record, and export the scores; how the delivery ends."""
        if delivery.number > self._options.max_deliveries:
            detail = f"delivered {delivery.number} times, and no worker finished it"
            return Disposition(ending="dead_lettered", reason="deliveries_used_up", detail=detail)
        try:
            async with self._reading:  # in a thread: some take seconds, whatever they are; and redact may be slow
                size, record = await asyncio.to_thread(self._read, delivery)
        except RedactionError as error:
            return Disposition(ending="dead_lettered", reason="redaction_failed", detail=str(error))
        except Exception as error:  # noqa: BLE001 - a poison message, whatever is wrong with it
            detail = str(error) if isinstance(error, RecordError) else type(error).__name__
            return Disposition(ending="dead_lettered", reason="invalid_record", detail=detail)
        delivery.size = size
        self._changed.set()  # there is more room: the largest size was reserved
        if self._stop.is_set():
            return STOPPED
        scored = await self._scoring.score(delivery, record)
        delivery.is_judging = False
        self._changed.set()
        if not isinstance(scored, ScoredRecord):
            return Disposition(ending="nacked", reason="not_scored", detail=scored.reason)
        return await self._scoring.export(delivery, scored)
