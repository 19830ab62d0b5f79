"""OpenTelemetry providers as the standard `OTEL_*` variables describe them, for processes of ragspan's own.

The helper process and `ragspan doctor` export as the application would. Samplers, resources, limits and batches are read
from the environment by the SDK itself; what is added here is the choice of exporters, which the SDK leaves to distributions.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast
from urllib.parse import urlsplit

from ragspan.arguments import one_of
from ragspan.config import variable
from ragspan.exceptions import ConfigurationError

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
_GRPC_PORT = 4317


@dataclass(frozen=True, kw_only=True, slots=True)
class EnvironmentProviders:
    """Providers that nobody else uses: whoever made them shuts them down."""

    tracer_provider: TracerProvider
    meter_provider: MeterProvider
    logger_provider: LoggerProvider | None
    """None where no exporter of logs is named: events would go nowhere."""


def make_exporter(_signal: Signal, entry: EntryPoint) -> Any:
    """The exporter, as it configures itself from the environment."""
    return entry.load()()


def providers_from_environment(
    resource_attributes: Mapping[str, Any] | None = None,
    *,
    make: ExporterMaker = make_exporter,
    processor: Callable[[Sequence[SpanExporter]], SpanProcessor] | None = None,
    id_generator: IdGenerator | None = None,
) -> EnvironmentProviders:
    """New providers with the exporters that the environment names.

    Args:
        resource_attributes: of the application, where it has set some in code; `OTEL_RESOURCE_ATTRIBUTES` and
            `OTEL_SERVICE_NAME` fill in what is missing.
        make: makes each exporter; a caller that wants to watch them brings its own.
        processor: makes what hands spans to all of the exporters, in place of a batch processor for each.
        id_generator: in place of the one that `OTEL_PYTHON_ID_GENERATOR` names.

    Raises:
        ConfigurationError: an exporter or a generator of ids is named that is not installed, or an unknown protocol.
    """
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    resource = Resource.create(dict(resource_attributes or {}))
    tracers = TracerProvider(resource=resource, id_generator=id_generator or _id_generator(), shutdown_on_exit=False)
    made = exporters("traces", make)
    for one in map(BatchSpanProcessor, made) if processor is None else [processor(made)]:
        tracers.add_span_processor(one)
    return EnvironmentProviders(
        tracer_provider=tracers,
        meter_provider=meter_provider(resource, make),
        logger_provider=logger_provider(resource, make) if exporter_names("logs") else None,
    )


def exporter_is_configured() -> bool:
    """True when the environment names an exporter of spans, or an OTLP endpoint for them."""
    return bool(exporter_names("traces"))


def exporter_names(signal: Signal) -> Sequence[str]:
    """What `OTEL_<SIGNAL>_EXPORTER` names, `otlp` where only an endpoint is set for the signal, else nothing.

    An endpoint alone is enough for spans; metrics and logs have to be asked for, since many endpoints take only spans.
    """
    named = variable(f"OTEL_{signal.upper()}_EXPORTER")
    if named is None:
        return ["otlp"] if endpoint(signal) is not None and signal == "traces" else []
    return [name.strip() for name in named.split(",") if name.strip() not in {"", "none"}]


def endpoint(signal: Signal) -> str | None:
    """The OTLP endpoint that the environment sets for a signal, as it stands there."""
    return variable(f"OTEL_EXPORTER_OTLP_{signal.upper()}_ENDPOINT") or variable("OTEL_EXPORTER_OTLP_ENDPOINT")


def exporter_of(signal: Signal, name: str) -> EntryPoint:
    """The installed exporter of that name; for `otlp` the one of the protocol that is configured.

    Without a protocol it is the one whose package is installed; with both, gRPC for port 4317 and else HTTP.

    Raises:
        ConfigurationError: it is not installed; the message says what would be.
    """
    installed = {entry.name: entry for entry in entry_points(group=f"opentelemetry_{signal}_exporter")}
    for candidate in _candidates(signal) if name == "otlp" else [name]:
        if candidate in installed:
            return installed[candidate]
    known = ", ".join(sorted(installed)) or "none"
    raise ConfigurationError(
        f"OTEL_{signal.upper()}_EXPORTER asks for {name!r}, but no such exporter is installed (there are: {known}); "
        "for OTLP over HTTP install opentelemetry-exporter-otlp-proto-http"
    )


def _candidates(signal: Signal) -> Sequence[str]:
    for name in (f"OTEL_EXPORTER_OTLP_{signal.upper()}_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"):
        protocol = variable(name)
        if protocol is not None:
            one_of(*_BY_PROTOCOL).check(name, protocol)
            return [_BY_PROTOCOL[protocol]]
    http_first = ["otlp_proto_http", "otlp_proto_grpc"]
    with contextlib.suppress(ValueError):  # of an address that is none
        if urlsplit(endpoint(signal) or "").port == _GRPC_PORT:
            return http_first[::-1]
    return http_first


def exporters(signal: Signal, make: ExporterMaker = make_exporter) -> list[Any]:
    """New exporters of a signal, as the environment names them.

    Raises:
        ConfigurationError: one of them is not installed, or the protocol is unknown.
    """
    return [make(signal, exporter_of(signal, name)) for name in exporter_names(signal)]


def _id_generator() -> Any:
    """What `OTEL_PYTHON_ID_GENERATOR` names; None for the usual one."""
    name = variable("OTEL_PYTHON_ID_GENERATOR")
    if name is None:
        return None
    for entry in entry_points(group="opentelemetry_id_generator"):
        if entry.name == name:
            return entry.load()()
    raise ConfigurationError(f"OTEL_PYTHON_ID_GENERATOR is {name!r}, but no such generator is installed")


def meter_provider(
    resource: Resource | None = None, make: ExporterMaker = make_exporter, *, shutdown_on_exit: bool = False
) -> MeterProvider:
    """A new provider of meters with the exporters that the environment names.

    Raises:
        ConfigurationError: one of them is not installed, or the protocol is unknown.
    """
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
    """A new provider of loggers with the exporters that the environment names.

    Raises:
        ConfigurationError: one of them is not installed, or the protocol is unknown.
    """
    from opentelemetry.sdk._logs import LoggerProvider
    from opentelemetry.sdk._logs.export import BatchLogRecordProcessor

    provider = LoggerProvider(resource=resource, shutdown_on_exit=shutdown_on_exit)
    for exporter in exporters("logs", make):
        provider.add_log_record_processor(BatchLogRecordProcessor(cast("Any", exporter)))
    return provider
