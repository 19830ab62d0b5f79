"""The OpenTelemetry providers that an emitter was given, or else the global ones.

An application may set its global providers after ragspan's engine was made. What the API's own defaults give out until then
follows them.
"""

from __future__ import annotations

import functools
import logging
import netrc  # noqa: F401 - else `requests` imports it at the first export, in a thread, and a fork may come at that moment
import time
import weakref
from importlib import metadata
from typing import Any, Protocol

from opentelemetry import _logs, metrics, trace
from opentelemetry._logs import LoggerProvider
from opentelemetry.metrics import Meter, MeterProvider
from opentelemetry.trace import TracerProvider

from ragspan.arguments import has_methods
from ragspan.process import in_use
from ragspan.telemetry import semconv
from ragspan.telemetry.otel_context import suppressed
from ragspan.telemetry.provider_end import is_read
from ragspan.throttled_log import log_line

SCORE_BUCKETS = tuple(tenth / 10 for tenth in range(1, 11))
_FLUSH = 30.0  # seconds for one provider at most, the SDK's default

# All uses are single operations of the dictionary, so there is no lock that a fork could leave held.
_flushed_as_well: dict[weakref.ref[Flushable], None] = {}


class Flushable(Protocol):
    """The SDK's providers are flushable; the API's defaults are not."""

    def force_flush(self, timeout_millis: int) -> object: ...


def flush_as_well(flushable: Flushable) -> None:
    """Flush this after the providers: their SDK does not flush an exporter, it only calls `export`."""
    _flushed_as_well[weakref.ref(flushable, lambda reference: _flushed_as_well.pop(reference, None))] = None


def flush_spans(timeout: float) -> bool:
    """Have the spans exported that wait at any provider that somebody here writes to; True if all were in time."""
    ends_at = time.monotonic() + timeout
    with suppressed():
        done = [_force_flush(one, ends_at) for one in (*in_use.provider_ends, *_also_flushed())]
    return all(done)


def _also_flushed() -> list[Flushable]:
    return [one for reference in list(_flushed_as_well) if (one := reference()) is not None]


class Providers:
    """Tracer, logger and histogram of the providers; None means the global provider.

    Raises:
        ConfigurationError: an argument is not a provider, but for instance a tracer.
    """

    def __init__(
        self,
        tracer_provider: TracerProvider | None,
        meter_provider: MeterProvider | None,
        logger_provider: LoggerProvider | None,
    ) -> None:
        self._given = {"tracer": tracer_provider, "meter": meter_provider, "logger": logger_provider}
        for name, given in self._given.items():
            rule = has_methods(f"a provider, with a method get_{name}, or None", f"get_{name}").or_none()
            rule.check(f"{name}_provider", given)
        scope = semconv.SCOPE, own_version(), semconv.SCHEMA_URL
        self.tracer = (tracer_provider or trace.get_tracer_provider()).get_tracer(*scope)
        self.event_logger = (logger_provider or _logs.get_logger_provider()).get_logger(*scope)
        self.score_histogram = meter_of(meter_provider or metrics.get_meter_provider()).create_histogram(
            semconv.METRIC_SCORE,
            unit="1",
            description="Scores of answers, from 0 to 1.",
            explicit_bucket_boundaries_advisory=SCORE_BUCKETS,
        )

    @property
    def has_metrics(self) -> bool:
        """Whether scores are measured, and somebody reads them."""
        return is_read(self._given["meter"] or metrics.get_meter_provider())

    @property
    def has_events(self) -> bool:
        """Whether somebody gets the events of scores."""
        return is_read(self._given["logger"] or _logs.get_logger_provider())

    def flush(self, timeout: float) -> bool:
        """Flush the providers one after the other, then what `flush_as_well` has got; True if all succeeded."""
        ends_at = time.monotonic() + timeout
        current: tuple[Any, ...] = (
            self._given["tracer"] or trace.get_tracer_provider(),
            self._given["meter"] or metrics.get_meter_provider(),
            self._given["logger"] or _logs.get_logger_provider(),
            *_also_flushed(),
        )
        done = [_force_flush(one, ends_at) for one in current if callable(getattr(one, "force_flush", None))]
        return all(done)


def _force_flush(one: Flushable, ends_at: float) -> bool:
    seconds = min(max(0.0, ends_at - time.monotonic()), _FLUSH)
    try:
        return one.force_flush(int(seconds * 1000)) is not False
    except Exception as error:  # noqa: BLE001 - a provider of the application's
        log_line(logging.WARNING, "flushing %s failed: %s", type(one).__name__, type(error).__name__)
        return False


@functools.cache
def own_version() -> str | None:
    try:
        return metadata.version("ragspan")
    except metadata.PackageNotFoundError:  # a source tree that was never installed
        return None


def meter_of(provider: MeterProvider) -> Meter:
    return provider.get_meter(semconv.SCOPE, own_version(), semconv.SCHEMA_URL)
