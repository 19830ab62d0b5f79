"""The OpenTelemetry providers that an emitter was given, or else the global ones of the moment.

An application may set its global providers after ragspan's engine was made; they are looked up at each use and
followed when they change.
"""

from __future__ import annotations

import functools
import logging
import netrc  # noqa: F401 - `requests` leaves it to the first export, in a thread that a fork may find at it
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from opentelemetry import _logs, metrics, trace
from opentelemetry._logs import Logger, LoggerProvider
from opentelemetry.metrics import Histogram, Meter, MeterProvider
from opentelemetry.trace import Tracer, TracerProvider

from ragspan.arguments import has_methods
from ragspan.telemetry import semconv

_Provider = TypeVar("_Provider")
_Made = TypeVar("_Made")

SCORE_BUCKETS = tuple(tenth / 10 for tenth in range(1, 11))
_FLUSH = 30.0  # seconds that a provider is given at most, as by its SDK's default

_logger = logging.getLogger("ragspan")
# A dictionary of which only single operations are used: no lock, which a fork could leave held.
_beyond: dict[weakref.ref[Flushable], None] = {}


class Flushable(Protocol):
    """What the SDK's providers have and the API's stand-ins lack."""

    def force_flush(self, timeout_millis: int) -> object: ...


def flush_as_well(flushable: Flushable) -> None:
    """Have this flushed after the providers, whose SDK flushes no further than to the exporter's `export`."""
    _beyond[weakref.ref(flushable, lambda reference: _beyond.pop(reference, None))] = None


def _force_flush(one: Flushable, seconds: float) -> bool:
    try:
        return one.force_flush(int(min(seconds, _FLUSH) * 1000)) is not False
    except Exception as error:  # noqa: BLE001 - whatever a provider raises, the flush has failed and no more
        _logger.warning("flushing %s failed: %s", type(one).__name__, type(error).__name__)
        return False


class Providers:
    """Tracer, logger and histogram of the providers in force.

    Args:
        tracer_provider: None, as for the others, means the global one.
        meter_provider: for the histogram of scores.
        logger_provider: for the events.

    Raises:
        ConfigurationError: an argument is no provider, but a tracer for instance.
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
        self.tracer = _InForce(tracer_provider, trace.get_tracer_provider, _tracer_of)
        self.score_histogram = _InForce(meter_provider, metrics.get_meter_provider, _score_histogram_of)
        self.event_logger = _InForce(logger_provider, _logs.get_logger_provider, _event_logger_of)
        """Gives None as long as events would go nowhere."""

    def flush(self, timeout: float) -> bool:
        """Flush them one after the other, and what asked to be flushed as well; True if none failed.

        An exporter that hangs may keep this longer than `timeout` seconds: the engine asks in a thread, and stops waiting.
        """
        ends_at = time.monotonic() + timeout
        in_force = (
            one.current() if one.given is None else one.given
            for one in (self.tracer, self.score_histogram, self.event_logger)
        )
        providers = [one for one in in_force if callable(getattr(one, "force_flush", None))]
        others = [one for reference in list(_beyond) if (one := reference()) is not None]
        done = [_force_flush(one, max(0.0, ends_at - time.monotonic())) for one in (*providers, *others)]  # type: ignore[arg-type]
        return all(done)


@dataclass(slots=True)
class _InForce(Generic[_Provider, _Made]):
    """A provider, and what is made from it: once, and again when another provider comes into force."""

    given: _Provider | None
    current: Callable[[], _Provider]
    make: Callable[[_Provider], _Made]
    latest: tuple[_Provider, _Made] | None = None

    def __call__(self) -> _Made:
        provider = self.current() if self.given is None else self.given
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
    # The loggers of the API package itself stand in for a missing SDK, and do nothing.
    return None if type(logger).__module__.startswith("opentelemetry._logs") else logger
