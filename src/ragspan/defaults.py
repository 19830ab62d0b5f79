"""The engine that handlers use when they are given none: made once, from the environment."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Sequence

from ragspan.arguments import has_methods
from ragspan.config import Settings
from ragspan.engine import Budget, ScoringEngine
from ragspan.exceptions import ConfigurationError
from ragspan.installed import load_part, part_names
from ragspan.judges.named import hhem_from
from ragspan.labelled import labelled_records
from ragspan.metrics import Metric
from ragspan.metrics.named import metrics_from, references_from
from ragspan.records import RecordSink
from ragspan.telemetry import Emitter, OTelEmitter
from ragspan.telemetry.base import installed_emitter
from ragspan.telemetry.environment import EnvironmentProviders, exporter_is_configured

_SINK = has_methods("a ScoringEngine, another object with a method submit, or None", "submit")
_SINKS = "ragspan_sink"
_logger = logging.getLogger("ragspan")
_lock = threading.RLock()  # reentrant: a signal handler may ask for the engine while it is made
_current: RecordSink | None = None
"""Where handlers send captures: an engine, or the sink of `RAGSPAN_SINK`."""


def default_engine() -> ScoringEngine:
    """The engine of this process, made at the first call from `RAGSPAN_*` variables.

    All four metrics, the embedded overlap judge and the global OpenTelemetry providers, unless the environment says
    otherwise. A paid judge is used only where `RAGSPAN_JUDGE` names it.

    Raises:
        ConfigurationError: a variable has a value that is not allowed; the message names it and what is.
    """
    global _current  # noqa: PLW0603  one engine per process is the point
    if isinstance(_current, ScoringEngine):
        return _current
    settings = Settings.from_environment()
    with _lock:
        if not isinstance(_current, ScoringEngine):
            made = engine_from(settings)
            _current = (
                _current if isinstance(_current, ScoringEngine) else made
            )  # a signal handler has made one meanwhile
        return _current


def default_sink() -> RecordSink:
    """Where handlers send captures when they are given no sink.

    That is `default_engine()`, or the sink that `RAGSPAN_SINK` names, made once. An engine that was set or used before stays.

    Raises:
        ConfigurationError: a variable has a value that is not allowed, or the sink's package is not installed.
    """
    global _current  # noqa: PLW0603  likewise
    if _current is not None:
        return _current
    settings = Settings.from_environment()
    if settings.sink is None or not settings.enabled:
        return default_engine()
    with _lock:
        if _current is None:
            made = sink_from(settings)
            _current = _current or made  # type: ignore[redundant-expr]  # likewise
    return _current


def sink_or_default(sink: RecordSink | None) -> RecordSink:
    """The sink that a handler was given, else the default one.

    Raises:
        ConfigurationError: what was given takes no records; or as for `default_sink`.
    """
    if sink is None:
        return default_sink()
    _SINK.check("sink", sink)
    return sink


def set_default_engine(engine: ScoringEngine | None) -> ScoringEngine | None:
    """Replace the engine that handlers use when they are given none; returns the one before, which is not shut down."""
    previous = set_default_sink(engine)
    return previous if isinstance(previous, ScoringEngine) else None


def set_default_sink(sink: RecordSink | None) -> RecordSink | None:
    """Replace what handlers submit to when they are given no sink, an engine or another sink; returns the one before."""
    global _current
    with _lock:
        previous, _current = _current, sink
    return previous


def _renew_lock_in_child() -> None:
    """A thread that makes the engine at the moment of a fork is not there in the child, and would hold the lock for good."""
    global _lock  # noqa: PLW0603
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock_in_child)


def engine_from(
    settings: Settings,
    providers: EnvironmentProviders | None = None,
    *,
    emitters: Sequence[Emitter] | None = None,
    metrics: Sequence[Metric] | None = None,
) -> ScoringEngine:
    """An engine as these settings describe it.

    Args:
        settings: all that `RAGSPAN_*` variables can say.
        providers: where it exports to; None means the global ones.
        emitters: in place of those that the settings name.
        metrics: likewise.
    """
    if metrics is None:
        metrics = metrics_from(settings) if settings.enabled else ()
    if emitters is None:
        emitters = emitters_from(settings, providers)
    references = references_from(settings, metrics) if settings.enabled else []
    shares = dict(settings.metric_sample_rates) if settings.enabled else {}
    return ScoringEngine(
        metrics=[*metrics, *references],
        emitters=emitters,
        queue_size=settings.queue_size,
        queue_bytes=settings.queue_bytes,
        drop=settings.drop,
        concurrency=settings.concurrency,
        sample_rate=settings.sample_rate,
        metric_sample_rates=shares | {one.name: settings.reference_share for one in references},
        score_unsampled=settings.score_unsampled,
        max_records_per_second=settings.max_records_per_second,
        budget=budget_from(settings) if settings.enabled else None,
        metric_timeout=settings.metric_timeout,
        exit_timeout=settings.exit_timeout,
        drain_on_sigterm=settings.drain_on_sigterm,
        judging=settings.judging,
        export=settings.export,
        redact=settings.redact,
        anchors=labelled_records(settings.anchors) if settings.enabled and settings.anchors else (),
        meter_provider=providers.meter_provider if providers else None,
    )


def emitters_from(settings: Settings, providers: EnvironmentProviders | None = None) -> list[Emitter]:
    """The emitters that these settings name.

    Raises:
        ConfigurationError: one of them is not installed.
    """
    if not settings.enabled:
        return []
    made = [emitter_from(name, settings, providers) for name in settings.emitters]
    if misses_span(made):
        _logger.warning(
            "RAGSPAN_EMITTERS is %r: without 'otel' no span of the answers is made or found, and writers such as phoenix "
            "and mlflow have nothing to write scores to",
            ",".join(settings.emitters),
        )
    return made


def misses_span(emitters: Sequence[Emitter]) -> bool:
    """Whether one of these needs the answer's span, and none makes or finds it."""
    has_span = any(isinstance(emitter, OTelEmitter) for emitter in emitters)
    return not has_span and any(getattr(emitter, "needs_span", False) for emitter in emitters)


def emitter_from(name: str, settings: Settings, providers: EnvironmentProviders | None = None) -> Emitter:
    """The emitter of this name: `otel`, `console`, or that of an installed package.

    Raises:
        ConfigurationError: it is not installed, or cannot be made.
    """
    if name == "console":
        from ragspan.telemetry.console import ConsoleEmitter

        return ConsoleEmitter(capture_content=settings.capture_content, explanations=settings.explanations)
    if name != "otel":
        return installed_emitter(name)
    return OTelEmitter(
        score_wait=settings.score_wait,
        spans=settings.spans,
        capture_content=settings.capture_content,
        explanations=settings.explanations,
        dimensions=settings.dimensions,
        openinference=settings.openinference,
        tracer_provider=providers.tracer_provider if providers else None,
        meter_provider=providers.meter_provider if providers else None,
        logger_provider=providers.logger_provider if providers else None,
    )


def check_worker(settings: Settings) -> None:
    """See to it that a process which only scores has something to do, and that its scores go somewhere.

    Raises:
        ConfigurationError: it has not, or they do not.
    """
    if not settings.enabled:
        raise ConfigurationError("RAGSPAN_ENABLED is false, so that a worker would have nothing to do")
    if "otel" not in settings.emitters:
        raise ConfigurationError(
            "RAGSPAN_EMITTERS has to name 'otel': the others write to the spans that it makes or finds"
        )
    has_spans = (
        settings.spans == "scores" and len(settings.emitters) > 1
    )  # others write to spans that are there already
    if not (exporter_is_configured() or has_spans):
        raise ConfigurationError(
            "no exporter of spans is configured, so that scores would go nowhere: set OTEL_EXPORTER_OTLP_ENDPOINT, "
            "such as http://localhost:4318, or OTEL_TRACES_EXPORTER; 'console' prints them"
        )


def budget_from(settings: Settings) -> Budget | None:
    """The budget that these settings set; None if they set no limit."""
    limits = (settings.budget_usd_per_day, settings.budget_tokens_per_minute, settings.budget_requests_per_minute)
    if not any(limits):
        return None
    return Budget(
        usd_per_day=settings.budget_usd_per_day,
        tokens_per_minute=settings.budget_tokens_per_minute,
        requests_per_minute=settings.budget_requests_per_minute,
        fallback=hhem_from(settings) if settings.budget_fallback == "hhem" else settings.budget_fallback,
    )


def sink_from(settings: Settings) -> RecordSink:
    """A new sink of the package that takes records at the address in `settings.sink`, such as `nats://broker:4222`.

    Raises:
        ConfigurationError: none is registered for it, or it cannot be made; the message holds no password of the address.
    """
    scheme = (settings.sink or "").partition("://")[0].lower()
    missing = (
        f"RAGSPAN_SINK has an address of the kind {scheme!r}, but no installed package takes records there "
        f"(there are: {', '.join(part_names(_SINKS)) or 'none'}); ragspan's own are in packages such as ragspan-{scheme}"
    )
    sink: RecordSink = load_part(_SINKS, scheme, missing)(settings)
    return sink
