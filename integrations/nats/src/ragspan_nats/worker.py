"""One worker: a coroutine for each message.

    receive ─► read ─► engine.score ─► spans exported ─► native scores written ─► acknowledged
                 │           │                │                   │
                 └───────────┴────────────────┴───────────────────┴─► or given back, or put aside as a dead letter

Guarantees:
- A message is acknowledged only after its scores have been exported. Whatever happens before that, the broker delivers it
  again, to this worker or to another.
- A message that is no record, or that was delivered too often, is put aside with its reason. None stops the worker, nor keeps
  its loop from turning: what takes long to read is read in a thread, one message at a time, and within limits.
- What is in flight is bounded, in number and in bytes, and the broker hears of it three times in `ack_wait`, however long a
  judge or a backend takes.
- Where the stream is replaced by another of its name, nothing that is in flight is acknowledged in the new one by mistake.
- While the judge's service is away, records are taken up one at a time and ever more rarely, so that they do not use up their
  deliveries.
- `stop` takes nothing new, finishes what is in flight within `drain_timeout` seconds, and gives the rest back at once.

The loop belongs to the thread that calls `run`; `stop` has to be called in it.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from opentelemetry.metrics import CallbackOptions, MeterProvider, Observation

from ragspan.backoff import Backoff
from ragspan.exceptions import RecordError
from ragspan.outcomes import ScoredRecord
from ragspan.record_json import MAX_JSON
from ragspan.records import RagRecord
from ragspan.redaction import Redact, RedactionError, redact_from, redacted
from ragspan.telemetry import semconv
from ragspan.telemetry.providers import meter_of
from ragspan.throttled_log import ThrottledLog
from ragspan_nats.consumer import STOPPED, Consumer, Delivery, Verdict
from ragspan_nats.message import json_in
from ragspan_nats.scoring import FleetScoring
from ragspan_nats.settings import BrokerAccess, Stream, WorkerOptions

if TYPE_CHECKING:
    from nats.aio.msg import Msg

    from ragspan.config import Settings

_TICK = 1.0  # seconds between two signs that the loop turns
_LOOK = 0.25  # seconds until it is looked again whether there is room, for an outage of the judge may be over
_HANGS = 10.0  # seconds without a tick after which the loop counts as hanging
_HEARTBEAT = 5.0  # seconds between two heartbeats, at most; and for each
_RECOVERY = 10.0  # seconds between two looks for what the broker has lost sight of, and for each
_LAST_WORDS = 5.0  # seconds for giving back what is left
_JUDGE_PAUSES = (1.0, 30.0)  # seconds, the first and the longest, while the judge is away
_WORDS = {"nacked": "given back", "dead_lettered": "put among the dead letters"}
_QUICKLY_READ = 64 * 1024  # bytes of JSON that are read within some milliseconds, whatever they are


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkerStats:
    """How a worker is, and what it has done so far, in deliveries."""

    alive: bool = True
    """Its loop has turned a moment ago."""
    ready: bool = False
    """Records can come."""
    in_flight: int = 0
    acknowledged: int = 0
    """Scored, exported, and out of the stream."""
    nacked: dict[str, int] = field(default_factory=dict)
    """To be delivered again, by reason."""
    dead_lettered: dict[str, int] = field(default_factory=dict)
    """Dead letters, by reason."""


class Worker:
    """Scores the records of a stream, until it is stopped.

    Args:
        access: the broker.
        settings: of the engine and its emitters; `OTEL_*` variables say where to export.
        options: of the worker.
        stream: of the fleet; `ragspan` if None.

    Raises:
        ConfigurationError: no exporter is configured, or a setting cannot be used.
    """

    def __init__(
        self, access: BrokerAccess, settings: Settings, *, options: WorkerOptions, stream: Stream | None = None
    ) -> None:
        self._options = options
        self._redact = redact_from(settings.redact)
        self._log = ThrottledLog()
        self._scoring = FleetScoring(settings, options, log=self._log)
        self._consumer = Consumer(
            access=access,
            stream=stream or Stream(),
            options=options,
            take=self._begin,
            on_new_stream=self._leave_old_stream,
            log=self._log,
        )
        self._in_flight: dict[tuple[int, float], Delivery] = {}
        self._ended: Counter[tuple[str, str]] = Counter()
        """Deliveries by their end and its reason."""
        first, longest = _JUDGE_PAUSES
        self._judge = Backoff(first=first, longest=longest)
        self._deliveries: set[asyncio.Task[None]] = set()
        self._reading = asyncio.Lock()
        self._changed = asyncio.Event()
        self._stop = asyncio.Event()
        self._hurry = asyncio.Event()
        self._requests_are_over = asyncio.Event()
        self._last_tick = time.monotonic()
        self._make_instruments()

    @property
    def meter_provider(self) -> MeterProvider:
        """Where it counts; native writers count with the global one, which this should be."""
        return self._scoring.meter_provider

    def stats(self) -> WorkerStats:
        """How it is, and what it has done so far; may be asked from any thread."""

        def ended(how: str) -> dict[str, int]:
            return {reason: number for (ending, reason), number in dict(self._ended).items() if ending == how}

        return WorkerStats(
            alive=time.monotonic() - self._last_tick < _HANGS,
            ready=self._consumer.is_ready and not self._stop.is_set(),
            in_flight=len(self._in_flight),
            acknowledged=sum(ended("acknowledged").values()),
            nacked=ended("nacked"),
            dead_lettered=ended("dead_lettered"),
        )

    def stop(self) -> None:
        """Finish what is in flight and end; called again, give it back and end."""
        if self._stop.is_set():
            self._hurry.set()
        self._stop.set()
        self._changed.set()

    async def run(self) -> None:
        """Work until `stop`."""
        receiving, stopped = asyncio.create_task(self._receive()), asyncio.create_task(self._stop.wait())
        beside = [
            asyncio.create_task(work)
            for work in (
                self._repeat("heartbeat", min(self._options.ack_wait / 3, _HEARTBEAT), self._send_heartbeat),
                self._repeat("orphans", _RECOVERY, self._recover_orphans),
                self._tick(),
            )
        ]
        try:
            # All but the last only end by a mistake of ours; then all ends, and shows what it was.
            await asyncio.wait([receiving, *beside, stopped], return_when=asyncio.FIRST_COMPLETED)
            self._stop.set()
            await asyncio.wait([receiving], timeout=self._consumer.longest_request)  # what was asked for arrives still
            self._requests_are_over.set()
            await self._finish()
        finally:
            self._stop.set()
            self._requests_are_over.set()
            receiving.cancel()
            await self._nak_the_rest()
            for task in (*beside, stopped):
                task.cancel()
            await self._scoring.shutdown()
            with suppress(Exception):  # the broker may be away
                await asyncio.wait_for(self._consumer.close(), _LAST_WORDS)
        for task in (receiving, *beside):
            if task.done() and not task.cancelled() and (error := task.exception()) is not None:
                raise error

    async def _receive(self) -> None:
        """Request as many messages as there is room for, until it is told to stop."""
        while not self._stop.is_set():
            self._changed.clear()
            room = self._room()
            if room > 0:
                await self._consumer.request(room)
            else:
                with suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(self._changed.wait(), _LOOK)

    def _room(self) -> int:
        """How many more records there is room for, if each was as large as can be."""
        in_flight, options = self._in_flight.values(), self._options
        judging = sum(one.is_judging for one in in_flight)
        size = sum(one.size for one in in_flight)
        return min(
            self._may_be_judged() - judging,
            options.room - len(in_flight),
            (options.max_in_flight_bytes - size) // MAX_JSON,
        )

    def _may_be_judged(self) -> int:
        """How many records at a time: one, and ever more rarely, while the judge's service is away, or they use up deliveries."""
        if self._judge.remaining:
            return 0
        return 1 if self._judge.refusals else self._options.concurrency

    def _begin(self, message: Msg) -> None:
        """Bring a message on its way."""
        delivery = Delivery.of(message)
        before = self._in_flight.get(delivery.key)
        if before is not None and not before.is_nacked:  # the broker did not hear of us for a while
            before.reply, before.number = delivery.reply, max(delivery.number, before.number)
            return
        self._in_flight[delivery.key] = delivery
        delivery.task = asyncio.create_task(self._deliver(delivery))
        self._deliveries.add(delivery.task)
        delivery.task.add_done_callback(self._deliveries.discard)

    async def _deliver(self, delivery: Delivery) -> None:
        """The way of one message from its arrival to its end with the broker."""
        try:
            verdict = delivery.verdict = await self._end_of(delivery)
            self._changed.set()
            if verdict is STOPPED:
                await self._requests_are_over.wait()  # or the broker would deliver it to this worker again
            if not delivery.is_orphan:
                self._count(await self._consumer.end(delivery, verdict), asked=verdict)
        finally:
            if self._in_flight.get(delivery.key) is delivery:  # and not one that came after it was given back
                del self._in_flight[delivery.key]
            self._changed.set()

    async def _end_of(self, delivery: Delivery) -> Verdict:
        """How a delivery ends, whatever goes wrong; with its last one a message becomes a dead letter."""
        try:
            verdict = await self._verdict_on(delivery)
        except asyncio.CancelledError:
            verdict = STOPPED
        except Exception as error:  # noqa: BLE001 - a mistake of ours: one record's must not end the worker
            self._log.trouble("worker", "a record could not be scored: %s", type(error).__name__)
            verdict = Verdict(ending="nacked", reason="lost")
        delivery.is_judging = False
        self._scoring.abandon(delivery)
        if verdict.ending == "acknowledged":
            self._judge.succeeded()
        elif verdict.reason == "judge_outage":
            self._judge.refused()
        is_last = delivery.number >= self._options.max_deliveries and verdict is not STOPPED
        return replace(verdict, ending="dead_lettered") if verdict.ending == "nacked" and is_last else verdict

    async def _verdict_on(self, delivery: Delivery) -> Verdict:
        """Read a message, score its record, and export the scores; how the delivery ends."""
        if self._stop.is_set():
            return STOPPED
        if delivery.number > self._options.max_deliveries:
            detail = f"delivered {delivery.number} times, and no worker came to an end with it"
            return Verdict(ending="dead_lettered", reason="deliveries_used_up", detail=detail)
        try:
            record = await self._record_of(delivery)
        except RedactionError as error:
            return Verdict(ending="dead_lettered", reason="redaction_failed", detail=str(error))
        except Exception as error:  # noqa: BLE001 - a poison message, whatever is wrong with it
            detail = str(error) if isinstance(error, RecordError) else type(error).__name__
            return Verdict(ending="dead_lettered", reason="invalid_record", detail=detail)
        if self._stop.is_set():  # as of now: reading it took a moment
            return STOPPED
        scored = await self._scoring.score(delivery, record)
        delivery.is_judging = False
        self._changed.set()
        if not isinstance(scored, ScoredRecord):
            return Verdict(ending="nacked", reason="lost", detail=scored.reason)
        return await self._scoring.export(delivery, scored)

    async def _record_of(self, delivery: Delivery) -> RagRecord:
        """The record of a message, redacted.

        Raises:
            RecordError: it holds none.
            RedactionError: it cannot be redacted.
        """
        text = json_in(delivery.payload, delivery.headers)
        if len(text) <= _QUICKLY_READ and self._redact is None:
            record = _read(text, None)
        else:
            async with self._reading:
                record = await asyncio.to_thread(_read, text, self._redact)
        delivery.size = len(text)
        self._changed.set()  # it takes less than the most that was reserved
        return record

    def _count(self, verdict: Verdict, *, asked: Verdict) -> None:
        for one in dict.fromkeys((asked, verdict)):
            if one.reason:
                self._log.trouble(one.reason, "a record was %s: %s", _WORDS[one.ending], one.reason)
        reason = verdict.reason or ""
        self._ended[verdict.ending, reason] += 1
        attributes = {semconv.RESULT: verdict.ending, semconv.REASON: reason}
        self._counter.add(1, {name: value for name, value in attributes.items() if value})

    def _leave_old_stream(self) -> None:
        """What is in flight is scored all the same; a word about it would end others, with the same places in the new stream."""
        for delivery in self._in_flight.values():
            delivery.is_orphan = True
            if delivery.verdict is not None and delivery.task is not None:
                delivery.task.cancel()

    async def _tick(self) -> None:
        """Note that the loop turns."""
        while True:
            self._last_tick = time.monotonic()
            await asyncio.sleep(_TICK)

    async def _repeat(self, what: str, pause: float, do: Callable[[], Awaitable[float]]) -> None:
        """Do something with the broker once in so many seconds, and for no longer; it may ask for a shorter pause."""
        longest = pause
        while True:
            await asyncio.sleep(pause)
            if not self._consumer.is_connected:
                continue
            try:
                pause = min(await asyncio.wait_for(do(), longest), longest)
            except Exception as error:  # noqa: BLE001 - the connection is lost at this moment, or the broker does not let us
                self._log.trouble(what, "the broker could not be asked (%s): %s", what, type(error).__name__)

    async def _send_heartbeat(self) -> float:
        """Tell the broker of what is in flight, so that it gives none of it to another worker.

        One that is given back would wait for `ack_wait` in place of its delay.
        """
        return await self._consumer.send_heartbeat(
            lambda: (one for one in self._in_flight.values() if not (one.is_nacked or one.is_orphan))
        )

    async def _recover_orphans(self) -> float:
        await self._consumer.recover_orphans()
        return _RECOVERY

    async def _finish(self) -> None:
        """Let what is in flight end within `drain_timeout`, or until the worker is told to hurry."""

        async def finish() -> None:
            while self._deliveries:
                await asyncio.wait(list(self._deliveries))

        waits = [asyncio.create_task(self._hurry.wait()), asyncio.create_task(finish())]
        await asyncio.wait(waits, timeout=self._options.drain_timeout, return_when=asyncio.FIRST_COMPLETED)
        for task in waits:
            task.cancel()

    async def _nak_the_rest(self) -> None:
        """Give back what has not ended."""
        self._consumer.is_stopping = True
        for delivery in self._in_flight.values():
            if delivery.task is not None and delivery.verdict is None:
                delivery.task.cancel()
        if self._deliveries:
            _, left = await asyncio.wait(self._deliveries, timeout=_LAST_WORDS)
            for task in left:
                task.cancel()

    def _make_instruments(self) -> None:
        def observe(_: CallbackOptions) -> Iterator[Observation]:
            yield Observation(len(self._in_flight))

        meter = meter_of(self.meter_provider)
        self._counter = meter.create_counter(
            semconv.METRIC_FLEET_DELIVERIES,
            unit="{delivery}",
            description="Deliveries of records to workers that have ended: acknowledged, given back, or put aside.",
        )
        meter.create_observable_gauge(
            semconv.METRIC_FLEET_IN_FLIGHT,
            [observe],
            unit="{record}",
            description="Records that this worker has in flight.",
        )


def _read(text: bytes, redact: Redact | None) -> RagRecord:
    record = RagRecord.from_json(text)
    return record if redact is None else redacted(record, redact)
