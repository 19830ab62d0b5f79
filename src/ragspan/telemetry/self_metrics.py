"""What an engine tells about itself: queue, records, and what judging takes.

Guarantees:
- Engines are held weakly: one that is collected disappears from the metrics.
- Several engines share the instruments of a provider, so that none is registered twice; each has its own series.
- There is no lock here that a fork could leave held: all bookkeeping is single operations on one dictionary.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Protocol, TypeVar

from opentelemetry import metrics
from opentelemetry.metrics import CallbackOptions, Meter, MeterProvider, Observation

from ragspan.outcomes import MetricFailure, NotApplicable, Outcome, Usage
from ragspan.telemetry import semconv
from ragspan.telemetry.providers import meter_of
from ragspan.telemetry.values import encodable, error_type, named

_Told = TypeVar("_Told")

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
        self._provider = _in_force(meter_provider)
        meter = meter_of(meter_provider or metrics.get_meter_provider())
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
        _observe(meter, self._provider)

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
        engine = _Engine(
            _weakly(stats, lambda _: _engines.pop(engine.name, None)),
            _weakly(queue_bytes),
            self._provider,
            max_records,
            max_bytes,
            finished_as,
        )
        engine.join(named(name))

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


@dataclass(eq=False, slots=True)
class _Engine:
    """An engine that is watched."""

    stats: Callable[[], CountsOfAnEngine | None]
    queue_bytes: Callable[[], int | None]
    provider: Callable[[], MeterProvider | None]
    max_records: int
    max_bytes: int
    finished_as: str
    name: str = ""

    def join(self, name: str) -> None:
        """Appear in the metrics, under the first free name."""
        for number in count(1):
            self.name = name if number == 1 else f"{name}-{number}"
            if _engines.setdefault(self.name, self) is self:
                return

    def queued(self) -> int | None:
        counts = self.stats()
        return None if counts is None else counts.queued


_engines: dict[str, _Engine] = {}


def _weakly(method: Callable[[], _Told], left: Callable[[object], object] | None = None) -> Callable[[], _Told | None]:
    """What the bound method returns as long as its object lives; then None."""
    reference = weakref.WeakMethod(method, left)
    return lambda: None if (living := reference()) is None else living()


def _in_force(given: MeterProvider | None) -> Callable[[], MeterProvider | None]:
    return metrics.get_meter_provider if given is None else weakref.ref(given)


_GAUGES: tuple[tuple[str, str, str, Callable[[_Engine], int | None]], ...] = (
    (semconv.METRIC_QUEUE_SIZE, "{record}", "Records that wait to be scored.", _Engine.queued),
    (
        semconv.METRIC_QUEUE_BYTES,
        "By",
        "Text of the records that wait to be scored.",
        lambda engine: engine.queue_bytes(),
    ),
    (semconv.METRIC_QUEUE_CAPACITY, "{record}", "Records that may wait.", lambda engine: engine.max_records),
    (semconv.METRIC_QUEUE_CAPACITY_BYTES, "By", "Text that may wait.", lambda engine: engine.max_bytes),
)


def _observe(meter: Meter, provider: Callable[[], MeterProvider | None]) -> None:
    """Tell the meter about all engines of its provider.

    All of them, since a provider asks only the callbacks with which an instrument was first created.
    """

    def engines() -> list[_Engine]:
        own = provider()
        return [engine for engine in list(_engines.values()) if own is not None and engine.provider() is own]

    def gauge(value: Callable[[_Engine], int | None]) -> Callable[[CallbackOptions], Iterator[Observation]]:
        def observe(_: CallbackOptions) -> Iterator[Observation]:
            for engine in engines():
                if (told := value(engine)) is not None:
                    yield Observation(told, {semconv.ENGINE: engine.name})

        return observe

    def records(_: CallbackOptions) -> Iterator[Observation]:
        for engine in engines():
            if (counts := engine.stats()) is not None:
                yield from _records_of(engine, counts)

    for name, unit, description, value in _GAUGES:
        meter.create_observable_up_down_counter(name, [gauge(value)], unit=unit, description=description)
    meter.create_observable_counter(
        semconv.METRIC_RECORDS,
        [records],
        unit="{record}",
        description="Records that are done with: scored, without anything to score, or dropped.",
    )


def _records_of(engine: _Engine, counts: CountsOfAnEngine) -> Iterator[Observation]:
    finished = {engine.finished_as: counts.scored, semconv.RESULT_NOTHING_TO_SCORE: counts.nothing_to_score}
    for result, number in finished.items():
        yield Observation(number, {semconv.ENGINE: engine.name, semconv.RESULT: result})
    dropped = {semconv.ENGINE: engine.name, semconv.RESULT: semconv.RESULT_DROPPED}
    for reason, number in counts.dropped.items():
        yield Observation(number, dropped | {semconv.REASON: reason})
