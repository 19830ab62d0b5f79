"""The default engine or sink of handlers, and everything else that is made from `Settings`."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence

from ragspan.arguments import has_methods
from ragspan.config import Settings
from ragspan.engine import Budget, ScoringEngine
from ragspan.exceptions import ConfigurationError
from ragspan.forks import watch_forks
from ragspan.installed import load_part, part_names
from ragspan.labelled import labelled_records
from ragspan.metrics import Metric
from ragspan.metrics.named import hhem_from, metrics_from, references_from
from ragspan.records import RecordSink
from ragspan.telemetry import Emitter, OTelEmitter
from ragspan.telemetry.base import installed_emitter
from ragspan.telemetry.environment import EnvironmentProviders, exporter_is_configured

_SINK_RULE = has_methods("a ScoringEngine, another object with a method submit, or None", "submit")
_SINKS = "ragspan_sink"
_LIKE_SETTINGS = (
    *("queue_size", "queue_bytes", "drop", "concurrency", "max_records_per_second", "sample_rate", "score_unsampled"),
    *("metric_timeout", "exit_timeout", "drain_on_sigterm", "judging", "export", "redact", "unknown_contexts"),
)
"""Arguments of an engine that are settings of the same name."""
_logger = logging.getLogger("ragspan")
_lock = threading.RLock()  # reentrant: a signal handler may call `default_engine` while it runs
_current: RecordSink | None = None
"""Takes the handlers' captures: an engine, or the sink of `RAGSPAN_SINK`."""


def default_engine() -> ScoringEngine:
    """The engine of this process. The first call makes it from the `RAGSPAN_*` variables.

    By default it has the four default metrics, the embedded overlap judge and the global OpenTelemetry providers. A paid
    judge is used only if `RAGSPAN_JUDGE` names it.

    Raises:
        ConfigurationError: a variable has a value that is not allowed; the message says what is allowed.
    """
    global _current  # noqa: PLW0603  one engine per process is the point
    if isinstance(_current, ScoringEngine):
        return _current
    settings = Settings.from_environment()
    with _lock:
        if not isinstance(_current, ScoringEngine):
            _current = engine_from(settings)
        return _current


def default_sink() -> RecordSink:
    """The sink of handlers that are given none: the sink that `RAGSPAN_SINK` names, or `default_engine()`.

    It is made once. An engine that was set or used before stays.

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
            _current = sink_from(settings)
        return _current


def sink_or_default(sink: RecordSink | None) -> RecordSink:
    """The sink that a handler was given, else the default one.

    Raises:
        ConfigurationError: the given object takes no records; or as for `default_sink`.
    """
    if sink is None:
        return default_sink()
    _SINK_RULE.check("sink", sink)
    return sink


def set_default_engine(engine: ScoringEngine | None) -> ScoringEngine | None:
    """Replace the engine of handlers that are given none; returns the previous one, which is not shut down."""
    previous = set_default_sink(engine)
    return previous if isinstance(previous, ScoringEngine) else None


def set_default_sink(sink: RecordSink | None) -> RecordSink | None:
    """Replace the engine or sink of handlers that are given none; returns the previous one."""
    global _current
    with _lock:
        previous, _current = _current, sink
    return previous


def _renew_lock_in_child() -> None:
    """Replace the lock: in the child, a thread of the parent would hold it forever."""
    global _lock  # noqa: PLW0603
    _lock = threading.RLock()


watch_forks(_renew_lock_in_child, lambda renew: renew())


def engine_from(
    settings: Settings,
    providers: EnvironmentProviders | None = None,
    *,
    emitters: Sequence[Emitter] | None = None,
    metrics: Sequence[Metric] | None = None,
) -> ScoringEngine:
    """An engine as these settings describe it.

    Args:
        settings: the values of all `RAGSPAN_*` variables.
        providers: for its telemetry; None means the global ones.
        emitters: in place of those that the settings name.
        metrics: in place of those that the settings name.
    """
    if not settings.enabled:
        return ScoringEngine(metrics=(), emitters=())
    if metrics is None:
        metrics = metrics_from(settings)
    references = references_from(settings, metrics)
    shares = {one.name: settings.reference_share for one in references}
    return ScoringEngine(
        metrics=[*metrics, *references],
        emitters=emitters_from(settings, providers) if emitters is None else emitters,
        metric_sample_rates={**settings.metric_sample_rates, **shares},
        budget=budget_from(settings),
        anchors=labelled_records(settings.anchors) if settings.anchors else (),
        meter_provider=providers.meter_provider if providers else None,
        **{name: getattr(settings, name) for name in _LIKE_SETTINGS},
    )


def emitters_from(settings: Settings, providers: EnvironmentProviders | None = None) -> list[Emitter]:
    """The emitters that these settings name.

    Raises:
        ConfigurationError: one of them is not installed.
    """
    made = [emitter_from(name, settings, providers) for name in settings.emitters]
    has_span = any(isinstance(emitter, OTelEmitter) for emitter in made)
    if not has_span and any(getattr(emitter, "needs_span", False) for emitter in made):
        _logger.warning(
            "RAGSPAN_EMITTERS is %r: without 'otel' no span of the answers is made or found, and writers such as phoenix "
            "and mlflow have nothing to write scores to",
            ",".join(settings.emitters),
        )
    return made


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
    """Check that a process which only scores is enabled, and that its scores are exported.

    Raises:
        ConfigurationError: it is not, or they are not.
    """
    if not settings.enabled:
        raise ConfigurationError("RAGSPAN_ENABLED is false, so that a worker would have nothing to do")
    if "otel" not in settings.emitters:
        raise ConfigurationError(
            "RAGSPAN_EMITTERS has to name 'otel': the others write to the spans that it makes or finds"
        )
    # With `spans="scores"` the other emitters write to spans of the application.
    has_spans = settings.spans == "scores" and len(settings.emitters) > 1
    if not (exporter_is_configured() or has_spans):
        raise ConfigurationError(
            "no exporter of spans is configured, so that scores would go nowhere: set OTEL_EXPORTER_OTLP_ENDPOINT, "
            "such as http://localhost:4318, or OTEL_TRACES_EXPORTER; 'console' prints them"
        )


def budget_from(settings: Settings) -> Budget | None:
    """The budget of these settings; None if they set no limit."""
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
    """A new sink for the address in `settings.sink`, such as `nats://broker:4222`, from the package for its scheme.

    Raises:
        ConfigurationError: no package registers one, or it cannot be made; the message never contains the password.
    """
    scheme = (settings.sink or "").partition("://")[0].lower()
    missing = (
        f"RAGSPAN_SINK has an address of the kind {scheme!r}, but no installed package takes records there "
        f"(there are: {', '.join(part_names(_SINKS)) or 'none'}); ragspan's own: pip install 'ragspan[nats]'"
    )
    sink: RecordSink = load_part(_SINKS, scheme, missing)(settings)
    return sink
