"""What a helper does. Each service answers the questions that have the names of its coroutine methods.

There are two, since they share nothing but the messages. `MetricService` calls a metric; time limits, fallbacks, budget and
export are the application's. `RecordService` has all of these itself: it is an engine without a queue.
"""

from __future__ import annotations

import asyncio
import functools
import pickle
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ragspan.engine.helper import serialization
from ragspan.engine.helper.connection import FramedProtocol
from ragspan.engine.helper.serving import Service
from ragspan.engine.metric_call import outcome_of
from ragspan.engine.options import Options
from ragspan.engine.record_queue import Item
from ragspan.engine.record_scorer import RecordScorer, about_response
from ragspan.engine.stats import Dropped
from ragspan.engine.threads import Deadline, call_guarded
from ragspan.judges.session import JudgingSession, judging
from ragspan.metrics.metric import Metric
from ragspan.outcomes import ScoredRecord
from ragspan.records import RagRecord
from ragspan.redaction import RedactedRecord
from ragspan.telemetry.environment import providers_from_environment
from ragspan.telemetry.otel_context import suppressed
from ragspan.telemetry.self_metrics import SelfMetrics
from ragspan.throttled_log import ThrottledLog

_RECENT = 16  # records whose metrics share a session
_NO_RECORD = RagRecord(question=None, contexts=None, response=None)


class MetricService(Service):
    """Scores records by copies of the application's metrics."""

    def __init__(self, _: FramedProtocol, metrics: bytes) -> None:
        self._metrics: list[Metric] = pickle.loads(metrics)  # noqa: S301 - from the application

    async def score(self, number: int, session_number: int, record: bytes) -> bytes:
        """What is known of the response, and the outcome of the metric with this number."""
        loaded, session = _session_of(session_number, record)
        with suppressed(), judging(session):
            outcome = await outcome_of(self._metrics[number].score, loaded)
        about = session.get_or_make("about", lambda: call_guarded(about_response, loaded)[0])
        return pickle.dumps((about, outcome))


@functools.lru_cache(_RECENT)
def _session_of(number: int, record: bytes) -> tuple[RagRecord, JudgingSession]:  # noqa: ARG001 - one for each time that a record is scored
    loaded = serialization.loads(record)
    return loaded, JudgingSession(record=loaded)


class RecordService(Service):
    """Scores whole records and exports their spans, as the environment says. The application counts the records."""

    def __init__(self, link: FramedProtocol, options: bytes, resource_attributes: Mapping[str, Any]) -> None:
        _set_providers(resource_attributes)
        made: Options = pickle.loads(options)  # noqa: S301 - from the application
        log = ThrottledLog(count=lambda place: link.send(("error", 0, place)))
        self._scorer = RecordScorer(made, self_metrics=SelfMetrics(), log=log)
        self.time_to_work = made.exit_timeout

    async def score(self, record: bytes, sample: bool, is_awaited: bool) -> bytes | Dropped | None:  # noqa: FBT001 - from a message
        """Why the record was dropped, if it was. Else what somebody awaits: the pickled `ScoredRecord`, without its record."""
        result = await self._scorer.process(Item(RedactedRecord(serialization.loads(record)), 0, sample=sample))
        if isinstance(result, ScoredRecord):
            return pickle.dumps(replace(result, record=_NO_RECORD)) if is_awaited else None
        return result

    async def flush(self, timeout: float) -> bool:
        return await asyncio.to_thread(self._scorer.flush, Deadline(timeout))

    async def stop(self, timeout: float) -> None:
        self.time_to_work = 0.0  # the application has given up what is open
        await asyncio.to_thread(self._scorer.stop, Deadline(timeout))


def _set_providers(resource_attributes: Mapping[str, Any]) -> None:
    from opentelemetry import _logs, metrics, trace

    providers = providers_from_environment(resource_attributes)
    trace.set_tracer_provider(providers.tracer_provider)
    metrics.set_meter_provider(providers.meter_provider)
    if providers.logger_provider is not None:
        _logs.set_logger_provider(providers.logger_provider)
