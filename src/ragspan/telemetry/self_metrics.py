"""What an engine tells about itself: queue, records, and what judging takes.

Guarantees:
- Engines are held weakly: one that is collected disappears from the metrics.
- Several engines share the instruments of a provider, so that none is registered twice; each has its own series.
- There is no lock here that a fork could leave held: all bookkeeping is single operations on one dictionary.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping
from itertools import count
from typing import Protocol

from opentelemetry import metrics
from opentelemetry.metrics import CallbackOptions, Meter, MeterProvider, Observation

from ragspan.outcomes import MetricFailure, NotApplicable, Outcome, Usage
from ragspan.telemetry import semconv
from ragspan.telemetry.providers import meter_of
from ragspan.telemetry.values import encodable, error_type, named

_SECONDS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
"""Buckets as the GenAI conventions advise them for the calls of models."""


class CountsOfAnEngine(Protocol):
    """The part of the engine's statistics that is told."""

    @property
    def queued(self) -> int: ...
    @property
    def scored(self) -> int: ...
    @property
    def nothing_to_score(self) -> int: ...
    @property
    def dropped(self) -> Mapping[str, int]: ...


class SelfMetrics:
    """The instruments of an engine.

    Args:
        meter_provider: None means the global one, whenever it is set.
    """

    def __init__(self, meter_provider: MeterProvider | None = None) -> None:
        self._given = meter_provider
        meter = meter_of(metrics.get_meter_provider() if meter_provider is None else meter_provider)
        self._outcomes = meter.create_counter(
            semconv.METRIC_OUTCOMES,
            unit="{outcome}",
            description="What came of scoring, once for each metric and record: a score, a reason why there is none, a failure.",
        )
        self._duration = meter.create_histogram(
            semconv.METRIC_JUDGE_DURATION,
            unit="s",
            description="Time that a metric took for a record.",
            explicit_bucket_boundaries_advisory=_SECONDS,
        )
        self._tokens = meter.create_counter(
            semconv.METRIC_JUDGE_TOKENS,
            unit="{token}",
            description="Tokens that judging took: read anew, read from the provider's cache, written.",
        )
        self._cost = meter.create_counter(
            semconv.METRIC_JUDGE_COST, unit="{USD}", description="What judging cost, where the price is known."
        )
        _observe(meter, _Observer(meter_provider))

    def watch(
        self,
        stats: Callable[[], CountsOfAnEngine],
        queue_bytes: Callable[[], int],
        name: str,
        *,
        max_records: int,
        max_bytes: int,
        finished_as: str = semconv.RESULT_SCORED,
    ) -> None:
        """Tell what an engine counts for as long as the engine lives.

        Args:
            stats: a bound method; its object is held weakly.
            queue_bytes: a bound method, likewise; bytes of text that wait.
            name: the engine's, for the attribute `ragspan.engine`; a number is added if another engine has it.
            max_records: that the queue may hold.
            max_bytes: of text, likewise.
            finished_as: the result of those that it counts as scored.

        Raises:
            TypeError: a function was given, which nobody else may hold.
        """
        _Engine(stats, queue_bytes, self._given, max_records, max_bytes, finished_as).join(named(name))

    def ended(self, metric: str, outcome: Outcome) -> None:
        """Count what came of one metric for one record."""
        result, reason = _result_of(outcome)
        self._outcomes.add(
            1,
            encodable({semconv.GEN_AI_EVALUATION_NAME: named(metric), semconv.RESULT: result, semconv.REASON: reason}),
        )

    def judged(self, metric: str, judge: str | None, seconds: float, usage: Usage | None) -> None:
        """Count what one metric took for one record."""
        attributes = encodable({semconv.GEN_AI_EVALUATION_NAME: named(metric), semconv.JUDGE: judge and named(judge)})
        self._duration.record(seconds, attributes)
        if usage is None:
            return
        for kind, tokens in _tokens_by_type(usage).items():
            if tokens > 0:
                self._tokens.add(tokens, attributes | {semconv.GEN_AI_TOKEN_TYPE: kind})
        if usage.usd is not None and usage.usd > 0:
            self._cost.add(usage.usd, attributes)


def _result_of(outcome: Outcome) -> tuple[str, str | None]:
    """The kind of outcome, and why: a score has a reason where another judge than the metric's own gave it."""
    if isinstance(outcome, NotApplicable):
        return semconv.RESULT_NOT_APPLICABLE, named(outcome.reason)
    if isinstance(outcome, MetricFailure):
        return semconv.RESULT_FAILED, error_type(outcome.error_type)
    return semconv.RESULT_SCORED, outcome.fallback and named(outcome.fallback)


def _tokens_by_type(usage: Usage) -> dict[str, int]:
    """Three kinds that add up to all tokens; `Usage` counts the cached ones among the input."""
    return {
        semconv.TOKEN_INPUT: usage.input_tokens - usage.cached_tokens,
        semconv.TOKEN_CACHED: usage.cached_tokens,
        semconv.TOKEN_OUTPUT: usage.output_tokens,
    }


class _Engine:
    """An engine that is watched."""

    def __init__(
        self,
        stats: Callable[[], CountsOfAnEngine],
        queue_bytes: Callable[[], int],
        given: MeterProvider | None,
        max_records: int,
        max_bytes: int,
        finished_as: str,
    ) -> None:
        self.max_records = max_records
        self.max_bytes = max_bytes
        self.finished_as = finished_as
        self._stats = weakref.WeakMethod(stats, self._leave)
        self._queue_bytes = weakref.WeakMethod(queue_bytes)
        self._given = None if given is None else weakref.ref(given)
        self.name = ""

    def join(self, name: str) -> None:
        """Appear in the metrics, under the first free name."""
        for number in count(1):
            self.name = name if number == 1 else f"{name}-{number}"
            if _engines.setdefault(self.name, self) is self:
                return

    def _leave(self, _: object) -> None:
        _engines.pop(self.name, None)

    def tells(self, provider: MeterProvider) -> bool:
        return _in_force(self._given) is provider

    def counts(self) -> CountsOfAnEngine | None:
        stats = self._stats()
        return stats() if stats is not None else None

    def bytes_waiting(self) -> int | None:
        queue_bytes = self._queue_bytes()
        return queue_bytes() if queue_bytes is not None else None


_engines: dict[str, _Engine] = {}


def _in_force(given: weakref.ref[MeterProvider] | None) -> MeterProvider | None:
    return metrics.get_meter_provider() if given is None else given()


class _Observer:
    """Tells a meter about all engines of its provider.

    All of them, since a provider asks only the callbacks with which an instrument was first created.
    """

    def __init__(self, given: MeterProvider | None) -> None:
        self._given = None if given is None else weakref.ref(given)

    def _engines(self) -> list[_Engine]:
        provider = _in_force(self._given)
        return [engine for engine in list(_engines.values()) if provider is not None and engine.tells(provider)]

    def _counts(self) -> Iterator[tuple[_Engine, CountsOfAnEngine]]:
        for engine in self._engines():
            counts = engine.counts()
            if counts is not None:
                yield engine, counts

    def queue_size(self, _: CallbackOptions) -> Iterator[Observation]:
        for engine, counts in self._counts():
            yield Observation(counts.queued, {semconv.ENGINE: engine.name})

    def queue_bytes(self, _: CallbackOptions) -> Iterator[Observation]:
        for engine in self._engines():
            waiting = engine.bytes_waiting()
            if waiting is not None:
                yield Observation(waiting, {semconv.ENGINE: engine.name})

    def queue_capacity(self, _: CallbackOptions) -> Iterator[Observation]:
        for engine in self._engines():
            yield Observation(engine.max_records, {semconv.ENGINE: engine.name})

    def queue_capacity_bytes(self, _: CallbackOptions) -> Iterator[Observation]:
        for engine in self._engines():
            yield Observation(engine.max_bytes, {semconv.ENGINE: engine.name})

    def records(self, _: CallbackOptions) -> Iterator[Observation]:
        for engine, counts in self._counts():
            finished = {engine.finished_as: counts.scored, semconv.RESULT_NOTHING_TO_SCORE: counts.nothing_to_score}
            for result, number in finished.items():
                yield Observation(number, {semconv.ENGINE: engine.name, semconv.RESULT: result})
            dropped = {semconv.ENGINE: engine.name, semconv.RESULT: semconv.RESULT_DROPPED}
            for reason, number in counts.dropped.items():
                yield Observation(number, dropped | {semconv.REASON: reason})


def _observe(meter: Meter, observer: _Observer) -> None:
    meter.create_observable_up_down_counter(
        semconv.METRIC_QUEUE_SIZE,
        [observer.queue_size],
        unit="{record}",
        description="Records that wait to be scored.",
    )
    meter.create_observable_up_down_counter(
        semconv.METRIC_QUEUE_BYTES,
        [observer.queue_bytes],
        unit="By",
        description="Text of the records that wait to be scored.",
    )
    meter.create_observable_up_down_counter(
        semconv.METRIC_QUEUE_CAPACITY,
        [observer.queue_capacity],
        unit="{record}",
        description="Records that may wait.",
    )
    meter.create_observable_up_down_counter(
        semconv.METRIC_QUEUE_CAPACITY_BYTES,
        [observer.queue_capacity_bytes],
        unit="By",
        description="Text that may wait.",
    )
    meter.create_observable_counter(
        semconv.METRIC_RECORDS,
        [observer.records],
        unit="{record}",
        description="Records that are done with: scored, without anything to score, or dropped.",
    )
