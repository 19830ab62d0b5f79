"""The default engine or sink of handlers, and everything else that is made from `Settings`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ragspan.arguments import has_methods, meant
from ragspan.config import Settings
from ragspan.engine import Budget, ScoringEngine
from ragspan.exceptions import ConfigurationError
from ragspan.installed import load_part, part_names
from ragspan.judges.judge_when import JudgeWhen
from ragspan.metrics import Metric
from ragspan.metrics.metric_catalogue import metrics_from
from ragspan.process import in_use
from ragspan.records import RecordSink
from ragspan.telemetry import Emitter, OTelEmitter
from ragspan.telemetry.emitter_protocols import emitter_class
from ragspan.telemetry.providers import EnvironmentProviders, exporter_names

if TYPE_CHECKING:
    from ragspan.tools.alerts import OnAlert

_SINK_RULE = has_methods("a ScoringEngine, another object with a method submit, or None", "submit")
_LIKE_SETTINGS = (
    *("queue_size", "concurrency", "sample_rate", "judge_share", "metric_timeout", "exit_timeout"),
    *("judging", "redact", "unknown_contexts"),
)
"""Arguments of an engine that are settings of the same name."""


# What handlers use


def default_engine() -> ScoringEngine:
    """The engine of this process. The first call makes it from the `RAGSPAN_*` variables.

    By default it has the default metrics, the embedded judge and the global OpenTelemetry providers. A paid
    judge is used only if `RAGSPAN_JUDGE` names it. Where `RAGSPAN_SINK` names a sink, handlers keep sending records there.

    Raises:
        ConfigurationError: a variable has a value that is not allowed; the message says what is allowed.
    """
    if isinstance(in_use.sink, ScoringEngine):
        return in_use.sink
    with in_use.lock:
        engine: ScoringEngine = in_use.engine or engine_from(Settings.from_environment())
        in_use.engine = engine
    return engine


def default_sink() -> RecordSink:
    """The sink of handlers that are given none: the sink that `RAGSPAN_SINK` names, or `default_engine()`; made once."""
    if in_use.sink is None:
        settings = Settings.from_environment()
        with in_use.lock:
            if in_use.sink is None:
                is_elsewhere = settings.sink is not None and settings.enabled
                in_use.sink = sink_from(settings) if is_elsewhere else default_engine()
    sink: RecordSink = in_use.sink
    return sink


def sink_or_default(sink: RecordSink | None) -> RecordSink:
    """The sink that a handler was given, else the default one; raises a `ConfigurationError` for what takes no records."""
    if sink is None:
        return default_sink()
    _SINK_RULE.check("sink", sink)
    return sink


def set_default_engine(engine: ScoringEngine | None) -> ScoringEngine | None:
    """Replace the engine of handlers that are given none; returns the previous one, which is not shut down."""
    made = in_use.engine
    previous = set_default_sink(engine)
    return previous if isinstance(previous, ScoringEngine) else made


def set_default_sink(sink: RecordSink | None) -> RecordSink | None:
    """Replace the engine or sink of handlers that are given none; returns the previous one."""
    with in_use.lock:
        previous: RecordSink | None = in_use.sink
        in_use.sink, in_use.engine = sink, None
    return previous


# What settings make


def engine_from(
    settings: Settings,
    providers: EnvironmentProviders | None = None,
    *,
    emitters: Sequence[Emitter] | None = None,
    metrics: Sequence[Metric] | None = None,
    **options: Any,
) -> ScoringEngine:
    """An engine as these settings describe it; what else is given is in place of what the settings name.

    Its telemetry goes to `providers`; None means the global ones.
    """
    if not settings.enabled:
        return ScoringEngine(metrics=(), emitters=())
    made = {"budget": budget_from(settings), **{name: getattr(settings, name) for name in _LIKE_SETTINGS}}
    if settings.judge_when is not None and "judge_when" not in options:
        made["judge_when"] = JudgeWhen(settings.judge_when, "RAGSPAN_JUDGE_WHEN")
    return ScoringEngine(
        metrics=metrics_from(settings) if metrics is None else metrics,
        emitters=emitters_from(settings, providers) if emitters is None else emitters,
        meter_provider=providers.meter_provider if providers else None,
        **{**made, **options},
    )


def budget_from(settings: Settings) -> Budget | None:
    """The budget of these settings; None if they set no limit."""
    dollars, requests = settings.budget_usd_per_day, settings.budget_requests_per_minute
    return Budget(usd_per_day=dollars, requests_per_minute=requests) if dollars or requests else None


def emitters_from(settings: Settings, providers: EnvironmentProviders | None = None) -> list[Emitter]:
    """The emitters that these settings name, as `with_spans` completes them."""
    made = [emitter_from(name, settings, providers) for name in settings.emitters]
    return [*with_spans(made, settings, providers), *alerts_from(settings)]


def emitter_from(name: str, settings: Settings, providers: EnvironmentProviders | None = None) -> Emitter:
    """The emitter of this name: `otel`, `console`, or that of an installed package."""
    content: dict[str, Any] = {"capture_content": settings.capture_content, "explanations": settings.explanations}
    if name == "console":
        from ragspan.telemetry.console import ConsoleEmitter

        return ConsoleEmitter(**content)
    if name != "otel":
        installed: Emitter = emitter_class(name)()
        return installed
    kinds = ("tracer_provider", "meter_provider", "logger_provider")
    content |= {kind: getattr(providers, kind, None) for kind in kinds}
    return OTelEmitter(**content, spans=settings.spans, dimensions=settings.dimensions)


def with_spans(
    emitters: Sequence[Emitter], settings: Settings, providers: EnvironmentProviders | None = None
) -> list[Emitter]:
    """These emitters, after `otel` where some of them write to spans that nobody here would make or find."""
    from ragspan.telemetry.console import ConsoleEmitter

    others = [emitter for emitter in emitters if not (needs_span(emitter) or isinstance(emitter, ConsoleEmitter))]
    is_needed = not others and any(map(needs_span, emitters))
    return [*([emitter_from("otel", settings, providers)] if is_needed else ()), *emitters]


def needs_span(emitter: Emitter) -> bool:
    """Whether it writes to an answer's span, which another emitter makes or finds."""
    return bool(getattr(emitter, "needs_span", False))


def alerts_from(settings: Settings, on_alert: OnAlert | None = None) -> list[Emitter]:
    """The emitter that tells when the share of failing answers has changed, if somebody is to be told."""
    told = on_alert or settings.alert_webhook
    content: dict[str, Any] = {"capture_content": settings.capture_content, "explanations": settings.explanations}
    if told is None:
        return []
    from ragspan.tools.alerts import AlertEmitter

    return [AlertEmitter(on_alert=told, **content)]


def sink_from(settings: Settings) -> RecordSink:
    """A new sink for the address in `settings.sink`, from the package for its scheme. No error contains its password."""
    scheme, is_address, _ = (settings.sink or "").partition("://")
    if not is_address:
        raise ConfigurationError("RAGSPAN_SINK is not an address such as nats://host:4222")
    scheme = scheme.lower()
    missing = (
        f"RAGSPAN_SINK has an address of the kind {scheme!r}, and no installed package takes records there"
        f"{meant(scheme, part_names('ragspan_sink'))}; for nats:// and tls://: pip install 'ragspan[nats]'"
    )
    sink: RecordSink = load_part("ragspan_sink", scheme, missing)(settings)
    return sink


def check_worker(settings: Settings) -> None:
    """Raise a `ConfigurationError` unless a process which only scores is enabled, and its scores are exported."""
    if not settings.enabled:
        raise ConfigurationError("RAGSPAN_ENABLED is false, so that a worker would have nothing to do")
    # With `spans="scores"` the other emitters write to spans of the application.
    has_spans = settings.spans == "scores" and len(settings.emitters) > 1
    if not ("console" in settings.emitters or exporter_names("traces") or has_spans):
        raise ConfigurationError(
            "no exporter of spans is configured, so that scores would go nowhere: set OTEL_EXPORTER_OTLP_ENDPOINT, "
            "such as http://localhost:4318, or OTEL_TRACES_EXPORTER, or RAGSPAN_EMITTERS=console, which prints them"
        )
