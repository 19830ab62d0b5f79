"""The engine's metrics about itself: its queue, its records, and the time, tokens and cost of judging.

Engines are held weakly. Several share the instruments of a provider, so that none is registered twice; each has its own series.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache, partial
from itertools import count
from typing import TypeAlias

from opentelemetry import metrics
from opentelemetry.metrics import CallbackOptions, MeterProvider, Observation

from ragspan.outcomes import MetricFailure, NotApplicable, Outcome, Score
from ragspan.telemetry import semconv
from ragspan.telemetry.providers import meter_of
from ragspan.telemetry.values import AttributeValue, clean_name, encodable, error_type
from ragspan.usage import Usage

_SECONDS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
"""The buckets that the GenAI conventions recommend for calls of models."""
Figure: TypeAlias = tuple[str, int, Mapping[str, str]]
"""A metric of `_OF_QUEUES`, its value, and its attributes beside the engine's name."""


class SelfMetrics:
    """The instruments of an engine, at the global provider if none is given, also if that is set later."""

    def __init__(self, meter_provider: MeterProvider | None = None) -> None:
        self.provider: Callable[[], MeterProvider | None] = (
            metrics.get_meter_provider if meter_provider is None else weakref.ref(meter_provider)
        )
        meter = self.meter = meter_of(meter_provider or metrics.get_meter_provider())
        self._outcomes, self._causes, self._tokens, self._cost = (
            meter.create_counter(name, unit=unit, description=description) for name, unit, description in _COUNTERS
        )
        self._duration = meter.create_histogram(
            semconv.METRIC_JUDGE_DURATION,
            unit="s",
            description="Time that a metric took for a record.",
            explicit_bucket_boundaries_advisory=_SECONDS,
        )
        for name, unit, description in _OF_QUEUES:
            is_sum = name == semconv.METRIC_RECORDS
            create = meter.create_observable_counter if is_sum else meter.create_observable_up_down_counter
            create(name, [partial(_observe, name, self.provider)], unit=unit, description=description)

    def watch(self, figures: Callable[[], Iterable[Figure]], name: str) -> None:
        """Show an engine's figures, by a method of its own, under its name, with a number if another engine has this name."""
        self.figures = figures
        for number in count(1):
            self.name = clean_name(name) if number == 1 else f"{clean_name(name)}-{number}"
            if _engines.setdefault(self.name, self) is self:
                return

    def ended(self, metric: str, outcome: Outcome) -> None:
        """Count the outcome of one metric for one record."""
        match outcome:
            case NotApplicable():
                result, reason = "not_applicable", outcome.reason
            case MetricFailure():
                result, reason = "failed", error_type(outcome.error_type)
            case Score():  # the reason says why a fallback judge gave the score
                result, reason = "scored", outcome.fallback or ""
        about = semconv.GEN_AI_EVALUATION_NAME, metric
        self._outcomes.add(1, _attributes(about, (semconv.RESULT, result), (semconv.REASON, reason)))
        if isinstance(outcome, Score) and outcome.causes:
            cause = {semconv.CAUSE_KIND: outcome.cause, semconv.STEP: outcome.losing_step}
            self._causes.add(1, encodable({**_attributes(about), semconv.JUDGE: outcome.judge, **cause}))

    def judged(self, metric: str, judge: str | None, seconds: float, usage: Usage | None) -> None:
        """Count the time, tokens and cost of one metric for one record."""
        attributes = _attributes((semconv.GEN_AI_EVALUATION_NAME, metric), (semconv.JUDGE, judge))
        self._duration.record(seconds, attributes)
        if usage is None:
            return
        # Three kinds whose sum is all tokens; in `Usage` the cached ones are part of the input.
        uncached = usage.input_tokens - usage.cached_tokens
        for kind, number in (("input", uncached), ("cached", usage.cached_tokens), ("output", usage.output_tokens)):
            if number > 0:
                self._tokens.add(number, attributes | {semconv.GEN_AI_TOKEN_TYPE: kind})
        if usage.usd is not None and usage.usd > 0:
            self._cost.add(usage.usd, attributes)


@lru_cache(maxsize=256)  # few metrics, judges and reasons
def _attributes(*known: tuple[str, str | None]) -> dict[str, AttributeValue]:
    return {name: clean_name(value) for name, value in known if value}


_engines: weakref.WeakValueDictionary[str, SelfMetrics] = weakref.WeakValueDictionary()
_COUNTERS = (
    (semconv.METRIC_OUTCOMES, "{outcome}", "What came of scoring, once for each metric and record."),
    (semconv.METRIC_CAUSES, "{score}", "Scores that fail, by the main cause and the step that lost the support."),
    (semconv.METRIC_JUDGE_TOKENS, "{token}", "Tokens that judging took: read anew, read from a cache, written."),
    (semconv.METRIC_JUDGE_COST, "{USD}", "What judging cost, where the price is known."),
)
_OF_QUEUES = (
    (semconv.METRIC_QUEUE_SIZE, "{record}", "Records that wait to be scored."),
    (semconv.METRIC_QUEUE_BYTES, "By", "Records that wait to be scored or are in work, with all that they hold."),
    (semconv.METRIC_QUEUE_CAPACITY, "{record}", "Records that may wait."),
    (semconv.METRIC_QUEUE_CAPACITY_BYTES, "By", "Text that may wait."),
    (semconv.METRIC_RECORDS, "{record}", "Records that are done with: scored, without anything to score, or dropped."),
)


def _observe(metric: str, provider: Callable[[], MeterProvider | None], _: CallbackOptions) -> Iterator[Observation]:
    """The figures of all engines of a provider, which calls only the callbacks with which an instrument was first created."""
    own = provider()
    # A copy, as engines may come and go meanwhile.
    for engine in filter(None, [reference() for reference in _engines.valuerefs()]):
        if engine.provider() is own:
            for shown, number, attributes in engine.figures():
                if shown == metric:
                    yield Observation(number, {semconv.ENGINE: engine.name, **attributes})
