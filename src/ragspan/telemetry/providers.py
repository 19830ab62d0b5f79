"""The OpenTelemetry providers that an emitter was given, or else the global ones.

An application may set its global providers after ragspan's engine was made, so they are looked up at each use.
"""

from __future__ import annotations

import functools
import logging
import netrc  # noqa: F401 - else `requests` imports it at the first export, in a thread, and a fork may come at that moment
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from opentelemetry import _logs, metrics, trace
from opentelemetry._logs import Logger, LoggerProvider
from opentelemetry.metrics import Histogram, Meter, MeterProvider
from opentelemetry.trace import Tracer, TracerProvider

from ragspan.arguments import has_methods
from ragspan.telemetry import semconv

_Provider = TypeVar("_Provider")
_Made = TypeVar("_Made")

SCORE_BUCKETS = tuple(tenth / 10 for tenth in range(1, 11))
_FLUSH = 30.0  # seconds for one provider at most, the SDK's default

_logger = logging.getLogger("ragspan")
# All uses are single operations of the dictionary, so there is no lock that a fork could leave held.
_flushed_as_well: dict[weakref.ref[Flushable], None] = {}


class Flushable(Protocol):
    """The SDK's providers are flushable; the API's defaults are not."""

    def force_flush(self, timeout_millis: int) -> object: ...


def flush_as_well(flushable: Flushable) -> None:
    """Flush this after the providers: their SDK does not flush an exporter, it only calls `export`."""
    _flushed_as_well[weakref.ref(flushable, lambda reference: _flushed_as_well.pop(reference, None))] = None


def _force_flush(one: Flushable, seconds: float) -> bool:
    try:
        return one.force_flush(int(min(seconds, _FLUSH) * 1000)) is not False
    except Exception as error:  # noqa: BLE001 - a provider of the application's
        _logger.warning("flushing %s failed: %s", type(one).__name__, type(error).__name__)
        return False


class Providers:
    """Tracer, logger and histogram of the current providers; None means the global provider.

    Raises:
        ConfigurationError: an argument is not a provider, but for instance a tracer.
    """

    def __init__(
        self,
        tracer_provider: TracerProvider | None,
        meter_provider: MeterProvider | None,
        logger_provider: LoggerProvider | None,
    ) -> None:
        for name, given in (("tracer", tracer_provider), ("meter", meter_provider), ("logger", logger_provider)):
            rule = has_methods(f"a provider, with a method get_{name}, or None", f"get_{name}").or_none()
            rule.check(f"{name}_provider", given)
        self.are_given = any(given is not None for given in (tracer_provider, meter_provider, logger_provider))
        """False when all of them are the global ones."""
        self.tracer = _Current(tracer_provider, trace.get_tracer_provider, _tracer_of)
        self.score_histogram = _Current(meter_provider, metrics.get_meter_provider, _score_histogram_of)
        self.event_logger = _Current(logger_provider, _logs.get_logger_provider, _event_logger_of)
        """Returns None as long as there is no SDK for events."""

    def flush(self, timeout: float) -> bool:
        """Flush the providers one after the other, then what `flush_as_well` has got; True if all succeeded."""
        ends_at = time.monotonic() + timeout
        current: list[Any] = [one.provider() for one in (self.tracer, self.score_histogram, self.event_logger)]
        providers = [one for one in current if callable(getattr(one, "force_flush", None))]
        others = [one for reference in list(_flushed_as_well) if (one := reference()) is not None]
        done = [_force_flush(one, max(0.0, ends_at - time.monotonic())) for one in (*providers, *others)]
        return all(done)


@dataclass(slots=True)
class _Current(Generic[_Provider, _Made]):
    """What is made from the current provider: once, and again when there is another provider."""

    given: _Provider | None
    get_global: Callable[[], _Provider]
    make: Callable[[_Provider], _Made]
    latest: tuple[_Provider, _Made] | None = None

    def provider(self) -> _Provider:
        return self.get_global() if self.given is None else self.given

    def __call__(self) -> _Made:
        provider = self.provider()
        latest = self.latest
        if latest is None or latest[0] is not provider:
            self.latest = latest = (provider, self.make(provider))
        return latest[1]


@functools.cache
def own_version() -> str | None:
    from importlib import metadata

    try:
        return metadata.version("ragspan")
    except metadata.PackageNotFoundError:  # a source tree that was never installed
        return None


def meter_of(provider: MeterProvider) -> Meter:
    return provider.get_meter(semconv.SCOPE, own_version(), semconv.SCHEMA_URL)


def _tracer_of(provider: TracerProvider) -> Tracer:
    return provider.get_tracer(semconv.SCOPE, own_version(), semconv.SCHEMA_URL)


def _score_histogram_of(provider: MeterProvider) -> Histogram:
    return meter_of(provider).create_histogram(
        semconv.METRIC_SCORE,
        unit="1",
        description="Scores of answers, from 0 to 1.",
        explicit_bucket_boundaries_advisory=SCORE_BUCKETS,
    )


def _event_logger_of(provider: LoggerProvider) -> Logger | None:
    logger = provider.get_logger(semconv.SCOPE, own_version(), semconv.SCHEMA_URL)
    # Without an SDK the logger is one of the API package, which does nothing.
    return None if type(logger).__module__.startswith("opentelemetry._logs") else logger
