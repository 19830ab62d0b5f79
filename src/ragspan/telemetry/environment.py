"""OpenTelemetry providers as the standard `OTEL_*` variables describe them, for ragspan's own processes.

The helper process and `ragspan doctor` export as the application would. The SDK itself reads samplers, resources, limits and
batches from the environment. Only the choice of exporters is made here: the SDK leaves it to distributions.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast
from urllib.parse import urlsplit

from ragspan.addresses import shown_url
from ragspan.arguments import meant, one_of
from ragspan.config import variable
from ragspan.exceptions import ConfigurationError
from ragspan.telemetry.export_log import with_short_log

if TYPE_CHECKING:
    from opentelemetry.sdk._logs import LoggerProvider
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
    from opentelemetry.sdk.trace.export import SpanExporter
    from opentelemetry.sdk.trace.id_generator import IdGenerator

Signal: TypeAlias = Literal["traces", "metrics", "logs"]
ExporterMaker: TypeAlias = "Callable[[Signal, EntryPoint], Any]"

_BY_PROTOCOL = {"grpc": "otlp_proto_grpc", "http/protobuf": "otlp_proto_http", "http/json": "otlp_json_http"}
_REMEDIES = {
    "otlp_proto_grpc": (
        "OTLP over gRPC",
        "pip install opentelemetry-exporter-otlp-proto-grpc, or set it to http/protobuf",
    ),
    "otlp_proto_http": ("OTLP over HTTP", "pip install 'ragspan[otlp]'"),
    "otlp_json_http": ("OTLP as JSON", "set it to http/protobuf"),
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


def make_exporter(signal: Signal, entry: EntryPoint) -> Any:
    """The exporter, which configures itself from the environment."""
    made = entry.load()()
    if entry.name not in _BY_PROTOCOL.values():
        return made
    usual = f"http://localhost:{GRPC_PORT if entry.name == _BY_PROTOCOL['grpc'] else HTTP_PORT}"
    return with_short_log(made, _ITEMS[signal], shown_url(endpoint(signal) or usual))


def providers_from_environment(
    resource_attributes: Mapping[str, Any] | None = None,
    *,
    make: ExporterMaker = make_exporter,
    processor: Callable[[Sequence[SpanExporter]], SpanProcessor] | None = None,
    id_generator: IdGenerator | None = None,
) -> EnvironmentProviders:
    """New providers with the exporters that the environment names.

    Args:
        resource_attributes: those that the application has set in code; `OTEL_RESOURCE_ATTRIBUTES` and
            `OTEL_SERVICE_NAME` add the missing ones.
        make: makes each exporter.
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
    asking, candidates = _candidates(signal) if name == "otlp" else (None, [name])
    for candidate in candidates:
        if candidate in installed:
            return installed[candidate]
    by_name = f"OTEL_{signal.upper()}_EXPORTER"
    if name != "otlp":
        known = ", ".join(sorted(installed)) or "none"
        raise ConfigurationError(
            f"{by_name} asks for {name!r}, but no such exporter is installed{meant(name, ['otlp', *installed])}; there are: {known}; "
            "for OTLP over HTTP: otlp"
        )
    asking = asking or (by_name if variable(by_name) else "OTEL_EXPORTER_OTLP_ENDPOINT")
    way, remedy = _REMEDIES.get(candidates[0] if len(candidates) == 1 else "", _REMEDIES["otlp_proto_http"])
    raise ConfigurationError(f"{asking} asks for an exporter of {way}, but none is installed: {remedy}")


def _candidates(signal: Signal) -> tuple[str | None, Sequence[str]]:
    """The variable that names the protocol, if one does, and the exporters that would do."""
    for name in (f"OTEL_EXPORTER_OTLP_{signal.upper()}_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"):
        protocol = variable(name)
        if protocol is not None:
            one_of(*_BY_PROTOCOL).check(name, protocol)
            return name, [_BY_PROTOCOL[protocol]]
    http_first = ["otlp_proto_http", "otlp_proto_grpc"]
    with contextlib.suppress(ValueError):  # not a URL
        if urlsplit(endpoint(signal) or "").port == GRPC_PORT:
            return None, http_first[::-1]
    return None, http_first


def exporters(signal: Signal, make: ExporterMaker = make_exporter) -> list[Any]:
    """New exporters of a signal, those that the environment names.

    Raises:
        ConfigurationError: one of them is not installed, or the protocol is unknown.
    """
    return [make(signal, exporter_of(signal, name)) for name in exporter_names(signal)]


def meter_provider(
    resource: Resource | None = None, make: ExporterMaker = make_exporter, *, shutdown_on_exit: bool = False
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
    resource: Resource | None = None, make: ExporterMaker = make_exporter, *, shutdown_on_exit: bool = False
) -> LoggerProvider:
    """A new logger provider with the exporters that the environment names; raises like `exporters`."""
    from opentelemetry.sdk._logs import LoggerProvider
    from opentelemetry.sdk._logs.export import BatchLogRecordProcessor

    provider = LoggerProvider(resource=resource, shutdown_on_exit=shutdown_on_exit)
    for exporter in exporters("logs", make):
        provider.add_log_record_processor(BatchLogRecordProcessor(cast("Any", exporter)))
    return provider
