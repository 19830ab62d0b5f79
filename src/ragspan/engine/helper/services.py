"""What a helper does: it scores a record by metrics and sends their outcomes, or also exports the record's spans."""

from __future__ import annotations

import asyncio
import functools
import pickle
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import count
from typing import TYPE_CHECKING, Any, TypeAlias

from ragspan.engine._metric_run import outcome_of
from ragspan.engine._record_queue import Item
from ragspan.engine._scoring import About, RecordScorer, about_response
from ragspan.engine._threads import Deadline, call_guarded
from ragspan.engine.helper import serialization
from ragspan.engine.helper.connection import FramedProtocol
from ragspan.engine.stats import Dropped
from ragspan.exceptions import JudgeError
from ragspan.judges.session import JudgingSession, UsageMeter, judging
from ragspan.metrics.base import Metric
from ragspan.outcomes import Outcome, ScoredRecord, Usage
from ragspan.records import RagRecord
from ragspan.telemetry.environment import providers_from_environment
from ragspan.telemetry.self_metrics import SelfMetrics
from ragspan.telemetry.suppress import suppressed
from ragspan.throttled_log import ThrottledLog

if TYPE_CHECKING:
    from ragspan.engine._options import Options


def record_service(link: FramedProtocol, options: bytes, resource_attributes: Mapping[str, Any]) -> RecordService:
    """Set this process up to export as the environment says, and to score as the application's engine would."""
    from opentelemetry import _logs, metrics, trace

    providers = providers_from_environment(resource_attributes)
    trace.set_tracer_provider(providers.tracer_provider)
    metrics.set_meter_provider(providers.meter_provider)
    if providers.logger_provider is not None:
        _logs.set_logger_provider(providers.logger_provider)
    return RecordService(link, pickle.loads(options))  # noqa: S301 - from the application, whose helper this is


Ended: TypeAlias = tuple[About | None, bytes, dict[int, str]]
"""What is known of the response, outcomes by the numbers of their metrics, and why an outcome cannot travel."""


class MetricService:
    """Scores records by copies of the application's metrics.

    All metrics of a record share one session. Their outcomes are sent as they come, the last ones as the answer.
    """

    time_to_work = 0.0  # nobody waits for outcomes any more

    def __init__(self, link: FramedProtocol, together: bytes, singly: Mapping[int, bytes]) -> None:
        self._link = link
        self.ready: dict[int, str] = {}
        """Why a metric cannot be scored here."""
        metrics, error = call_guarded(pickle.loads, together)
        self._metrics: dict[int, Metric] = metrics or {}
        for number, data in singly.items() if error is not None else ():
            metric, error = call_guarded(pickle.loads, data)
            if metric is None:
                self.ready[number] = f"{type(error).__name__}: {error}"
            else:
                self._metrics[number] = metric
        self._at_work: dict[int, _AtWork] = {}

    def handle(self, kind: str, question: int, payload: list[Any]) -> Awaitable[object] | None:
        if kind == "score":
            return self._score(question, *payload)
        record = self._at_work.get(payload[0])
        if record is not None:
            record.hear(kind, *payload[1:])
        return None

    def finish(self, timeout: float) -> None:
        """Nobody waits for answers any more."""

    async def _score(self, question: int, key: int, data: bytes, wanted: Mapping[int, bool]) -> Ended:
        send = functools.partial(self._part, question)
        work = self._at_work[key] = _AtWork(serialization.loads(data), send)
        try:
            for number, is_limited in wanted.items():
                if number in self._metrics:
                    work.start(number, self._metrics[number], is_limited=is_limited)
            about, _ = call_guarded(about_response, work.record)
            running, done = set(work.tasks.values()), set[asyncio.Task[tuple[int, Outcome]]]()
            while running:
                done, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                if running:
                    send("ended", *_packed([task.result() for task in done if not task.cancelled()], about))
            about, packed, unfit = _packed([task.result() for task in done if not task.cancelled()], about)
            return about, packed, unfit | {number: self.ready[number] for number in wanted if number in self.ready}
        finally:
            del self._at_work[key]

    def _part(self, question: int, kind: str, *content: Any) -> None:
        self._link.send(("part", question, kind, *content))


class _AtWork:
    """A record that is being scored."""

    def __init__(self, record: RagRecord, send: Callable[..., None]) -> None:
        self.record = record
        self.tasks: dict[int, asyncio.Task[tuple[int, Outcome]]] = {}
        self._send = send
        self._session = JudgingSession(record=record)
        self._reserving: dict[int, asyncio.Future[None]] = {}
        self._keys = count(1)

    def start(self, number: int, metric: Metric, *, is_limited: bool) -> None:
        session = replace(
            self._session,
            meter=_Meter(functools.partial(self._send, "usage", number)),
            allowance=_Allowance(functools.partial(self._reserve, number)) if is_limited else None,
        )
        with suppressed(), judging(session):
            self.tasks[number] = asyncio.get_running_loop().create_task(self._run(number, metric))

    def hear(self, kind: str, key: int, denial: JudgeError | None = None) -> None:
        if kind == "cancel":
            self.tasks[key].cancel()
        elif (reserving := self._reserving.pop(key, None)) is not None and not reserving.done():
            if denial is None:
                reserving.set_result(None)
            else:
                reserving.set_exception(denial)

    async def _run(self, number: int, metric: Metric) -> tuple[int, Outcome]:
        return number, await outcome_of(metric.score, self.record)

    async def _reserve(self, number: int, expected: Usage) -> _Reservation:
        key = next(self._keys)
        reserving = self._reserving[key] = asyncio.get_running_loop().create_future()
        self._send("reserve", number, expected, key)
        await reserving
        return _Reservation(functools.partial(self._send, "settle", key))


def _packed(ended: Sequence[tuple[int, Outcome]], about: About | None) -> Ended:
    packed, _ = call_guarded(serialization.dumps, ended)
    if packed is not None:
        return about, packed, {}
    unfit: dict[int, str] = {}
    for number, outcome in ended:
        _, error = call_guarded(serialization.dumps, outcome)
        if error is not None:
            unfit[number] = f"{type(error).__name__}: {error}"
    return about, serialization.dumps([one for one in ended if one[0] not in unfit]), unfit


class _Meter(UsageMeter):
    """Tells the application what is spent."""

    def __init__(self, send: Callable[[Usage], None]) -> None:
        super().__init__()
        self._send = send

    def add(self, usage: Usage) -> None:
        self._send(usage)


@dataclass(frozen=True, slots=True)
class _Allowance:
    """Asks the application, which keeps the budget."""

    reserve: Callable[[Usage], Awaitable[_Reservation]]


@dataclass(frozen=True, slots=True)
class _Reservation:
    settle: Callable[[Usage], None]


class RecordService:
    """Scores whole records and exports their spans; the counts of what becomes of them are kept in the application."""

    ready = None

    def __init__(self, link: FramedProtocol, options: Options) -> None:
        self._account = _Account(link)
        self._scoring = RecordScorer(options, account=self._account, self_metrics=SelfMetrics(), log=ThrottledLog())
        self._sequence = count(1)
        self._time_to_work = options.exit_timeout

    def handle(self, kind: str, question: int, payload: list[Any]) -> Awaitable[object]:  # noqa: ARG002 - one answer a question
        if kind == "score":
            return self._score(*payload)
        deadline = Deadline(payload[0])
        if kind == "flush":
            return asyncio.to_thread(self._scoring.flush, deadline)
        self._time_to_work = 0.0  # "shutdown": the application has given up what it had to leave
        return asyncio.to_thread(self._scoring.stop, deadline)

    @property
    def time_to_work(self) -> float:
        return self._time_to_work

    def finish(self, timeout: float) -> None:
        self._scoring.stop(Deadline(timeout))

    async def _score(self, data: bytes, sample: bool, is_awaited: bool) -> tuple[Dropped | None, bytes | None]:  # noqa: FBT001 - from a message
        """Why it was dropped, if it was; and what came of it, but for the record, if somebody awaits that."""
        record = serialization.loads(data)
        item = Item(record, 0, next(self._sequence), sample=sample)
        self._account.results[item.sequence] = None
        try:
            await self._scoring.score(item, record)  # which the application has redacted
        finally:
            result = self._account.results.pop(item.sequence)
        if isinstance(result, ScoredRecord):
            return None, _packed_record(result) if is_awaited else None
        return result or Dropped(reason="worker_error"), None


def _packed_record(scored: ScoredRecord) -> bytes:
    return serialization.dumps(
        {field.name: getattr(scored, field.name) for field in fields(scored) if field.name != "record"}
    )


class _Account:
    """What became of each record, until the application is told."""

    def __init__(self, link: FramedProtocol) -> None:
        self._link = link
        self.results: dict[int, ScoredRecord | Dropped | None] = {}
        """By sequence; None while it is in work."""

    def has_in_work(self, item: Item) -> bool:
        return self.results.get(item.sequence, self) is None

    def end(self, item: Item, result: ScoredRecord | Dropped | None) -> None:
        self.results[item.sequence] = result

    def record_error(self, place: str) -> None:
        self._link.send(("wrong", 0, place))
