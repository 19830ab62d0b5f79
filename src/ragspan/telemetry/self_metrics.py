"""The engine's metrics about itself: its queue, its records, and the time, tokens and cost of judging.

Guarantees:
- Engines are held weakly: a collected engine disappears from the metrics.
- Several engines share the instruments of a provider, so that none is registered twice; each has its own series.
- There is no lock that a fork could leave held: the module uses only single operations of one dictionary.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Protocol, TypeAlias

from opentelemetry import metrics
from opentelemetry.metrics import CallbackOptions, Meter, MeterProvider, Observation

from ragspan.outcomes import MetricFailure, NotApplicable, Outcome, Score, Usage
from ragspan.telemetry import semconv
from ragspan.telemetry.providers import meter_of
from ragspan.telemetry.values import encodable, error_type, named

_SECONDS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
"""The buckets that the GenAI conventions recommend for calls of models."""


class EngineCounts(Protocol):
    """The part of the engine's statistics that the metrics show."""

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
        meter_provider: None means the global one, also if it is set later.
    """

    def __init__(self, meter_provider: MeterProvider | None = None) -> None:
        self._provider: Callable[[], MeterProvider | None] = (
            metrics.get_meter_provider if meter_provider is None else weakref.ref(meter_provider)
        )
        meter = self.meter = meter_of(meter_provider or metrics.get_meter_provider())
        self._outcomes = meter.create_counter(
            semconv.METRIC_OUTCOMES,
            unit="{outcome}",
            description="What came of scoring, once for each metric and record: a score, a reason why there is none, a failure.",
        )
        self._causes = meter.create_counter(
            semconv.METRIC_CAUSES,
            unit="{score}",
            description="Scores that fail, by the cause of most of their claims and by the step that lost the support.",
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
        observe: Callable[[], tuple[EngineCounts, int]],
        name: str,
        *,
        max_records: int,
        max_bytes: int,
        finished_as: str = semconv.RESULT_SCORED,
    ) -> None:
        """Show an engine's counts for as long as the engine lives.

        Args:
            observe: a bound method, whose object is held weakly; gives the counts, and the bytes of text that wait.
            name: the engine's, for the attribute `ragspan.engine`; a number is added if another engine has this name.
            max_records: the size of the queue.
            max_bytes: its size in bytes of text.
            finished_as: the attribute `ragspan.result` of the records that the engine counts as scored.
        """
        engine = _Engine(
            weakref.WeakMethod(observe, lambda _: _engines.pop(engine.name, None)),
            self._provider,
            max_records,
            max_bytes,
            finished_as,
        )
        for number in count(1):
            engine.name = named(name) if number == 1 else f"{named(name)}-{number}"
            if _engines.setdefault(engine.name, engine) is engine:
                return

    def ended(self, metric: str, outcome: Outcome) -> None:
        """Count the outcome of one metric for one record."""
        result: str
        reason: str | None
        match outcome:
            case NotApplicable():
                result, reason = semconv.RESULT_NOT_APPLICABLE, named(outcome.reason)
            case MetricFailure():
                result, reason = semconv.RESULT_FAILED, error_type(outcome.error_type)
            case Score():  # the reason says why a fallback judge gave the score
                result, reason = semconv.RESULT_SCORED, outcome.fallback and named(outcome.fallback)
        about = {semconv.GEN_AI_EVALUATION_NAME: named(metric)}
        self._outcomes.add(1, encodable({**about, semconv.RESULT: result, semconv.REASON: reason}))
        if isinstance(outcome, Score) and outcome.cause is not None:
            step = outcome.losing_step and named(outcome.losing_step)
            self._causes.add(1, encodable({**about, semconv.CAUSE_KIND: outcome.cause, semconv.STEP: step}))

    def judged(self, metric: str, judge: str | None, seconds: float, usage: Usage | None) -> None:
        """Count the time, tokens and cost of one metric for one record."""
        attributes = encodable({semconv.GEN_AI_EVALUATION_NAME: named(metric), semconv.JUDGE: judge and named(judge)})
        self._duration.record(seconds, attributes)
        if usage is None:
            return
        # Three kinds whose sum is all tokens; in `Usage` the cached ones are part of the input.
        tokens = {
            semconv.TOKEN_INPUT: usage.input_tokens - usage.cached_tokens,
            semconv.TOKEN_CACHED: usage.cached_tokens,
            semconv.TOKEN_OUTPUT: usage.output_tokens,
        }
        for kind, number in tokens.items():
            if number > 0:
                self._tokens.add(number, attributes | {semconv.GEN_AI_TOKEN_TYPE: kind})
        if usage.usd is not None and usage.usd > 0:
            self._cost.add(usage.usd, attributes)


@dataclass(eq=False, slots=True)
class _Engine:
    observe: weakref.WeakMethod[Callable[[], tuple[EngineCounts, int]]]
    provider: Callable[[], MeterProvider | None]
    max_records: int
    max_bytes: int
    finished_as: str
    name: str = ""

    def records(self, counts: EngineCounts, _: int) -> Iterator[Observation]:
        engine = {semconv.ENGINE: self.name}
        finished = {self.finished_as: counts.scored, semconv.RESULT_NOTHING_TO_SCORE: counts.nothing_to_score}
        for result, number in finished.items():
            yield Observation(number, engine | {semconv.RESULT: result})
        for reason, number in counts.dropped.items():
            yield Observation(number, engine | {semconv.RESULT: semconv.RESULT_DROPPED, semconv.REASON: reason})


_engines: dict[str, _Engine] = {}

_Read: TypeAlias = Callable[[_Engine, EngineCounts, int], int]
_GAUGES: tuple[tuple[str, str, str, _Read], ...] = (
    (semconv.METRIC_QUEUE_SIZE, "{record}", "Records that wait to be scored.", lambda _, counts, __: counts.queued),
    (semconv.METRIC_QUEUE_BYTES, "By", "Text of the records that wait to be scored.", lambda _, __, size: size),
    (semconv.METRIC_QUEUE_CAPACITY, "{record}", "Records that may wait.", lambda engine, *_: engine.max_records),
    (semconv.METRIC_QUEUE_CAPACITY_BYTES, "By", "Text that may wait.", lambda engine, *_: engine.max_bytes),
)


def _observe(meter: Meter, provider: Callable[[], MeterProvider | None]) -> None:
    """Show all engines of the provider in its meter.

    All of them, because a provider calls only the callbacks with which an instrument was first created.
    """

    def of_all(
        read: Callable[[_Engine, EngineCounts, int], Iterable[Observation]],
    ) -> Callable[[CallbackOptions], Iterable[Observation]]:
        def observe(_: CallbackOptions) -> Iterator[Observation]:
            own = provider()
            for engine in list(_engines.values()):
                counts = engine.observe()  # None if it was just collected
                if own is not None and engine.provider() is own and counts is not None:
                    yield from read(engine, *counts())

        return observe

    def gauge(read: _Read) -> Callable[[_Engine, EngineCounts, int], Iterable[Observation]]:
        return lambda engine, counts, size: [Observation(read(engine, counts, size), {semconv.ENGINE: engine.name})]

    for name, unit, description, read in _GAUGES:
        meter.create_observable_up_down_counter(name, [of_all(gauge(read))], unit=unit, description=description)
    meter.create_observable_counter(
        semconv.METRIC_RECORDS,
        [of_all(_Engine.records)],
        unit="{record}",
        description="Records that are done with: scored, without anything to score, or dropped.",
    )
