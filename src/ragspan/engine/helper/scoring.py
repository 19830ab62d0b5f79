"""What a helper does that scores whole records and exports their spans."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Awaitable, Mapping
from dataclasses import fields
from itertools import count
from typing import TYPE_CHECKING, Any

from ragspan.engine._deadline import Deadline
from ragspan.engine._emitter_group import EmitterGroup
from ragspan.engine._record_queue import Item
from ragspan.engine._redaction import Redaction
from ragspan.engine._scoring import Scoring
from ragspan.engine.helper import wire
from ragspan.engine.helper.computing import ThreadComputing
from ragspan.engine.helper.link import Link
from ragspan.engine.stats import Dropped, DropReason
from ragspan.outcomes import ScoredRecord
from ragspan.telemetry.environment import providers_from_environment
from ragspan.telemetry.self_metrics import SelfMetrics
from ragspan.throttled_log import ThrottledLog

if TYPE_CHECKING:
    from ragspan.engine._options import Options


def serve(link: Link, options: bytes, resource_attributes: Mapping[str, Any]) -> ScoringService:
    """Set this process up to export as the environment says, and to score as the application's engine would."""
    from opentelemetry import _logs, metrics, trace

    providers = providers_from_environment(resource_attributes)
    trace.set_tracer_provider(providers.tracer_provider)
    metrics.set_meter_provider(providers.meter_provider)
    if providers.logger_provider is not None:
        _logs.set_logger_provider(providers.logger_provider)
    return ScoringService(link, pickle.loads(options))  # noqa: S301 - from the application, whose helper this is


class ScoringService:
    """Scores the records that the application sends; the counts of what becomes of them are kept there."""

    def __init__(self, link: Link, options: Options) -> None:
        log = ThrottledLog()
        self._account = _Account(link)
        self._emission = EmitterGroup(options.emitters, account=self._account, log=log)
        self._scoring = Scoring(
            options,
            account=self._account,
            emission=self._emission,
            self_metrics=SelfMetrics(),
            computing=ThreadComputing(),
            redaction=Redaction(options.redact, timeout=options.metric_timeout, account=self._account, log=log),
            log=log,
        )
        self._tickets = count(1)
        self._time_to_work = options.exit_timeout

    def handle(self, kind: str, payload: list[Any]) -> Awaitable[object]:
        if kind == "score":
            return self._score(*payload)
        deadline = Deadline(payload[0])
        if kind == "flush":
            return asyncio.to_thread(self._emission.flush, deadline)
        self._time_to_work = 0.0  # "shutdown": the application has given up what it had to leave
        return asyncio.to_thread(self._emission.shutdown, deadline)

    @property
    def time_to_work(self) -> float:
        return self._time_to_work

    def finish(self, timeout: float) -> None:
        self._emission.shutdown(Deadline(timeout))

    async def _score(self, data: bytes, sample: bool, is_awaited: bool) -> tuple[DropReason | None, bytes | None]:  # noqa: FBT001 - from a message
        """Why it was dropped, if it was; and what came of it, but for the record, if somebody awaits that."""
        record = wire.loads(data)
        scored: list[ScoredRecord | Dropped] = []
        item = Item(record, 0, next(self._tickets), sample=sample, on_end=scored.append if is_awaited else None)
        self._account.begin(item)
        await self._scoring.score_record(item, record)  # which the application has redacted
        return self._account.ending_of(item), next(map(_packed, scored), None)


def _packed(scored: ScoredRecord | Dropped) -> bytes:
    return wire.dumps({field.name: getattr(scored, field.name) for field in fields(scored) if field.name != "record"})


class _Account:
    """What became of each record, until the application is told."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._in_work: set[int] = set()
        self._dropped: dict[int, DropReason] = {}

    def begin(self, item: Item) -> None:
        self._in_work.add(item.sequence)

    def ending_of(self, item: Item) -> DropReason | None:
        if item.sequence in self._in_work:
            self.end_dropped(item, "worker_error")
        return self._dropped.pop(item.sequence, None)

    def has_in_work(self, item: Item) -> bool:
        return item.sequence in self._in_work

    def end_scored(self, item: Item, scored: ScoredRecord | None = None) -> None:
        self._in_work.discard(item.sequence)
        if item.on_end is not None and scored is not None:
            item.on_end(scored)

    def end_with_nothing_to_score(self, item: Item) -> None:
        self._in_work.discard(item.sequence)

    def end_dropped(self, item: Item, reason: DropReason) -> None:
        self._in_work.discard(item.sequence)
        self._dropped[item.sequence] = reason

    def record_error(self, place: str) -> None:
        self._link.send(("wrong", 0, place))
