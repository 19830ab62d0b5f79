"""OpenTelemetry providers as the standard `OTEL_*` variables describe them, for ragspan's own processes.

The SDK itself reads samplers, resources, limits and batches from the environment. Only the choice of exporters is made here: the SDK
leaves it to distributions. What exporters log of an endpoint that cannot be reached becomes one line a minute with the cause.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast
from urllib.parse import urlsplit

from ragspan.addresses import cause_in, shown_url
from ragspan.arguments import meant, one_of
from ragspan.config import variable
from ragspan.exceptions import ConfigurationError
from ragspan.throttled_log import ThrottledLog

if TYPE_CHECKING:
    from opentelemetry.sdk._logs import LoggerProvider
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
    from opentelemetry.sdk.trace.export import SpanExporter
    from opentelemetry.sdk.trace.id_generator import IdGenerator

Signal: TypeAlias = Literal["traces", "metrics", "logs"]
ExporterMaker: TypeAlias = "Callable[[Signal, EntryPoint], Any]"

_BY_PROTOCOL = {"grpc": "otlp_proto_grpc", "http/protobuf": "otlp_proto_http"}
_REMEDIES = {
    "otlp_proto_grpc": "OTLP over gRPC, but none is installed: pip install opentelemetry-exporter-otlp-proto-grpc, or set it to "
    "http/protobuf",
    "otlp_proto_http": "OTLP over HTTP, but none is installed: pip install 'ragspan[otlp]'",
}
GRPC_PORT, HTTP_PORT = 4317, 4318
_ITEMS: Mapping[Signal, str] = {"traces": "spans", "metrics": "metrics", "logs": "logs"}


@dataclass(frozen=True, kw_only=True, slots=True)
class EnvironmentProviders:
    """Providers for one use; the code that made them shuts them down."""

    tracer_provider: TracerProvider
    meter_provider: MeterProvider
    logger_provider: LoggerProvider | None
    """None if no exporter of logs is named."""

    def shutdown(self) -> None:
        """Send what is left, and close them."""
        for provider in (self.tracer_provider, self.meter_provider, self.logger_provider):
            if provider is not None:
                provider.shutdown()


def providers_from_environment(
    resource_attributes: Mapping[str, Any] | None = None,
    *,
    make: ExporterMaker | None = None,
    processor: Callable[[Sequence[SpanExporter]], SpanProcessor] | None = None,
    id_generator: IdGenerator | None = None,
) -> EnvironmentProviders:
    """New providers with the exporters that the environment names.

    Args:
        resource_attributes: those that the application has set in code; `OTEL_RESOURCE_ATTRIBUTES` and
            `OTEL_SERVICE_NAME` add the missing ones.
        make: makes each exporter; by default `make_exporter`.
        processor: makes one processor for all exporters, in place of a batch processor for each.
        id_generator: in place of the SDK's own.

    Raises:
        ConfigurationError: a named exporter is not installed, or the protocol is unknown.
    """
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    resource = Resource.create(dict(resource_attributes or {}))
    tracers = TracerProvider(resource=resource, id_generator=id_generator, shutdown_on_exit=False)
    made = exporters("traces", make)
    for one in map(BatchSpanProcessor, made) if processor is None else [processor(made)]:
        tracers.add_span_processor(one)
    return EnvironmentProviders(
        tracer_provider=tracers,
        meter_provider=meter_provider(resource, make),
        logger_provider=logger_provider(resource, make) if exporter_names("logs") else None,
    )


def meter_provider(
    resource: Resource | None = None, make: ExporterMaker | None = None, *, shutdown_on_exit: bool = False
) -> MeterProvider:
    """A new meter provider with the exporters that the environment names; raises like `exporters`."""
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import MetricReader, PeriodicExportingMetricReader

    readers = [
        exporter if isinstance(exporter, MetricReader) else PeriodicExportingMetricReader(exporter)
        for exporter in exporters("metrics", make)
    ]
    return MeterProvider(readers, resource=resource, shutdown_on_exit=shutdown_on_exit)


def logger_provider(
    resource: Resource | None = None, make: ExporterMaker | None = None, *, shutdown_on_exit: bool = False
) -> LoggerProvider:
    """A new logger provider with the exporters that the environment names; raises like `exporters`."""
    from opentelemetry.sdk._logs import LoggerProvider
    from opentelemetry.sdk._logs.export import BatchLogRecordProcessor

    provider = LoggerProvider(resource=resource, shutdown_on_exit=shutdown_on_exit)
    for exporter in exporters("logs", make):
        provider.add_log_record_processor(BatchLogRecordProcessor(cast("Any", exporter)))
    return provider


def exporters(signal: Signal, make: ExporterMaker | None = None) -> list[Any]:
    """New exporters of a signal, those that the environment names.

    Raises:
        ConfigurationError: one of them is not installed, or the protocol is unknown.
    """
    return [(make or make_exporter)(signal, exporter_of(signal, name)) for name in exporter_names(signal)]


def exporter_is_configured() -> bool:
    """True if the environment names an exporter of spans, or an OTLP endpoint for them."""
    return bool(exporter_names("traces"))


def exporter_names(signal: Signal) -> Sequence[str]:
    """The names in `OTEL_<SIGNAL>_EXPORTER`. Without it, `otlp` for spans if an endpoint is set, else nothing.

    For metrics and logs an endpoint alone is not enough, because many endpoints take only spans.
    """
    named = variable(f"OTEL_{signal.upper()}_EXPORTER")
    if named is None:
        return ["otlp"] if endpoint(signal) is not None and signal == "traces" else []
    return [name.strip() for name in named.split(",") if name.strip() not in {"", "none"}]


def sdk_is_disabled() -> bool:
    return (variable("OTEL_SDK_DISABLED") or "").lower() == "true"  # the only spelling that the SDK takes for true


def why_no_spans() -> str | None:
    """The variable that switches spans off, and its value; None if none does."""
    if sdk_is_disabled():
        return "OTEL_SDK_DISABLED is true"
    name = "OTEL_TRACES_EXPORTER"
    return f"{name} is {variable(name)}" if variable(name) and not exporter_names("traces") else None


def endpoint(signal: Signal) -> str | None:
    """The OTLP endpoint that the environment sets for a signal, unchanged."""
    return variable(f"OTEL_EXPORTER_OTLP_{signal.upper()}_ENDPOINT") or variable("OTEL_EXPORTER_OTLP_ENDPOINT")


def exporter_of(signal: Signal, name: str) -> EntryPoint:
    """The installed exporter of this name; for `otlp` the one for the configured protocol.

    Without a protocol it is the installed one; if both are installed, gRPC for port 4317 and else HTTP.

    Raises:
        ConfigurationError: it is not installed; the message names those that are.
    """
    installed = {entry.name: entry for entry in entry_points(group=f"opentelemetry_{signal}_exporter")}
    asking = f"OTEL_{signal.upper()}_EXPORTER"
    if name != "otlp":
        if name in installed:
            return installed[name]
        known = ", ".join(sorted(installed)) or "none"
        raise ConfigurationError(
            f"{asking} asks for {name!r}, but no such exporter is installed{meant(name, ['otlp', *installed])}; there are: {known}; "
            "for OTLP over HTTP: otlp"
        )
    candidates = ["otlp_proto_http", "otlp_proto_grpc"]
    asking = asking if variable(asking) else "OTEL_EXPORTER_OTLP_ENDPOINT"
    with contextlib.suppress(ValueError):  # not a URL
        candidates = candidates[::-1] if urlsplit(endpoint(signal) or "").port == GRPC_PORT else candidates
    for by_protocol in ("OTEL_EXPORTER_OTLP_PROTOCOL", f"OTEL_EXPORTER_OTLP_{signal.upper()}_PROTOCOL"):
        if (protocol := variable(by_protocol)) is not None:
            one_of(*_BY_PROTOCOL).check(by_protocol, protocol)
            asking, candidates = by_protocol, [_BY_PROTOCOL[protocol]]
    found = next((installed[candidate] for candidate in candidates if candidate in installed), None)
    if found is None:
        remedy = _REMEDIES[candidates[0] if len(candidates) == 1 else "otlp_proto_http"]
        raise ConfigurationError(f"{asking} asks for an exporter of {remedy}")
    return found


def make_exporter(signal: Signal, entry: EntryPoint) -> Any:
    """The exporter, which configures itself from the environment, and logs one line a minute while its endpoint is away."""
    made = entry.load()()
    if entry.name not in _BY_PROTOCOL.values():
        return made
    usual = f"http://localhost:{GRPC_PORT if entry.name == _BY_PROTOCOL['grpc'] else HTTP_PORT}"
    what, address, export = _ITEMS[signal], shown_url(endpoint(signal) or usual), made.export
    line = "%s cannot be sent to %s: %s; a batch is tried for OTEL_EXPORTER_OTLP_TIMEOUT, by default 10 s"

    def exported(*arguments: Any, **named: Any) -> Any:
        with hearing(lambda cause: _log.report(f"{what} {address}", line, what, address, cause)):
            return export(*arguments, **named)

    made.export = exported
    return made


_EXPORTERS = "opentelemetry.exporter."
_GIVEN_UP = "due to timeout"  # says this of every batch that it gives up, whatever the cause was
_hears: ContextVar[Callable[[str], bool] | None] = ContextVar("ragspan_export_hears", default=None)
_log = ThrottledLog()


@contextlib.contextmanager
def hearing(on_cause: Callable[[str], None]) -> Iterator[None]:
    """Tell why an endpoint cannot be reached, when an exporter would first log it inside, and let it log nothing from then on.

    Only what is logged inside is touched, in its own thread: exporters that the application has made log as ever.
    """
    is_told = False

    def hear(words: str) -> bool:
        nonlocal is_told
        cause = None if is_told else cause_in(words.replace(_GIVEN_UP, ""))
        if cause is not None:
            is_told = True
            on_cause(cause)
        return is_told

    for name in [name for name in logging.root.manager.loggerDict if name.startswith(_EXPORTERS)]:
        logger = logging.getLogger(name)
        if _is_not_heard not in logger.filters:
            logger.addFilter(_is_not_heard)
    token = _hears.set(hear)
    try:
        yield
    finally:
        _hears.reset(token)


def _is_not_heard(record: logging.LogRecord) -> bool:
    """A filter of the exporters' loggers."""
    hear = _hears.get()
    return hear is None or record.levelno < logging.WARNING or not hear(record.getMessage())
