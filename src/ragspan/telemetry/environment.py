"""OpenTelemetry providers as the standard `OTEL_*` variables describe them, for ragspan's own processes.

The SDK itself reads samplers, resources, limits and batches from the environment. Only the choice of exporters is made here: the SDK
leaves it to distributions. What exporters log of an endpoint that cannot be reached becomes one line a minute with the cause.
"""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from ragspan.addresses import cause_in, shown_url
from ragspan.arguments import meant, one_of
from ragspan.config import variable
from ragspan.counted import counted
from ragspan.exceptions import ConfigurationError
from ragspan.telemetry import semconv
from ragspan.throttled_log import ThrottledLog

if TYPE_CHECKING:
    from opentelemetry.sdk._logs import LoggerProvider
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.trace import TracerProvider

Signal: TypeAlias = Literal["traces", "metrics", "logs"]
ExporterMaker: TypeAlias = "Callable[[Signal, EntryPoint], Any]"

_BY_PROTOCOL = {"grpc": "otlp_proto_grpc", "http/protobuf": "otlp_proto_http"}
GRPC_PORT, HTTP_PORT = 4317, 4318
SDK_IS_OFF = "OTEL_SDK_DISABLED is true"


@dataclass(frozen=True, kw_only=True, slots=True)
class EnvironmentProviders:
    """Providers for one use; the code that made them shuts them down."""

    tracer_provider: TracerProvider
    meter_provider: MeterProvider
    logger_provider: LoggerProvider

    def shutdown(self) -> None:
        for provider in (self.tracer_provider, self.meter_provider, self.logger_provider):
            provider.shutdown()


def providers_from_environment(
    *, make: ExporterMaker | None = None, tracer_provider: TracerProvider | None = None
) -> EnvironmentProviders:
    """New providers with the exporters that the environment names, which `make` makes; raises like `exporters`."""
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    if tracer_provider is None:
        tracer_provider = TracerProvider(shutdown_on_exit=False)
        for one in exporters("traces", make):
            tracer_provider.add_span_processor(BatchSpanProcessor(one))
    return EnvironmentProviders(
        tracer_provider=tracer_provider, meter_provider=meter_provider(make), logger_provider=logger_provider(make)
    )


def meter_provider(make: ExporterMaker | None = None, *, shutdown_on_exit: bool = False) -> MeterProvider:
    """A new meter provider with the exporters that the environment names; raises like `exporters`."""
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import MetricReader, PeriodicExportingMetricReader

    made = exporters("metrics", make)
    readers = [one if isinstance(one, MetricReader) else PeriodicExportingMetricReader(one) for one in made]
    return MeterProvider(readers, shutdown_on_exit=shutdown_on_exit)


def logger_provider(make: ExporterMaker | None = None, *, shutdown_on_exit: bool = False) -> LoggerProvider:
    """A new logger provider with the exporters that the environment names; raises like `exporters`."""
    from opentelemetry.sdk._logs import LoggerProvider
    from opentelemetry.sdk._logs.export import BatchLogRecordProcessor

    provider = LoggerProvider(shutdown_on_exit=shutdown_on_exit)
    for exporter in exporters("logs", make):
        provider.add_log_record_processor(BatchLogRecordProcessor(exporter))
    return provider


def exporters(signal: Signal, make: ExporterMaker | None = None) -> list[Any]:
    """New exporters of a signal, those that the environment names.

    Raises:
        ConfigurationError: one of them is not installed, or the protocol is unknown.
    """
    return [(make or make_exporter)(signal, exporter_of(signal, name)) for name in exporter_names(signal)]


def exporter_names(signal: Signal) -> Sequence[str]:
    """The names in `OTEL_<SIGNAL>_EXPORTER`. Without it, `otlp` for spans if an endpoint is set, else nothing.

    For metrics and logs an endpoint alone is not enough, because many endpoints take only spans.
    """
    named = variable(f"OTEL_{signal.upper()}_EXPORTER")
    if named is None:
        return ["otlp"] if endpoint(signal) is not None and signal == "traces" else []
    return [name.strip() for name in named.split(",") if name.strip() not in {"", "none"}]


def why_no_spans() -> str | None:
    """The variable that switches spans off, and its value; None if none does."""
    if (variable("OTEL_SDK_DISABLED") or "").lower() == "true":  # the only spelling that the SDK takes for true
        return SDK_IS_OFF
    name = "OTEL_TRACES_EXPORTER"
    return f"{name} is {variable(name)}" if variable(name) and not exporter_names("traces") else None


def endpoint(signal: Signal) -> str | None:
    """The OTLP endpoint that the environment sets for a signal, unchanged."""
    return variable(*_endpoint_variables(signal))


def _endpoint_variables(signal: Signal) -> tuple[str, str]:
    return f"OTEL_EXPORTER_OTLP_{signal.upper()}_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"


def exporter_of(signal: Signal, name: str) -> EntryPoint:
    """The installed exporter of this name; for `otlp` the one for the configured protocol.

    Without a protocol it is the installed one; if both are installed, gRPC for port 4317 and else HTTP.

    Raises:
        ConfigurationError: it is not installed; the message names those that are.
    """
    installed = {entry.name: entry for entry in entry_points(group=f"opentelemetry_{signal}_exporter")}
    names = (f"OTEL_{signal.upper()}_EXPORTER", *_endpoint_variables(signal))
    asking, candidates = next(filter(variable, names), names[0]), [name]
    if name == "otlp":
        is_grpc = re.search(rf":{GRPC_PORT}(/|$)", endpoint(signal) or "") is not None
        candidates = sorted(_BY_PROTOCOL.values(), reverse=not is_grpc)
        for by_protocol in ("OTEL_EXPORTER_OTLP_PROTOCOL", f"OTEL_EXPORTER_OTLP_{signal.upper()}_PROTOCOL"):
            if (protocol := variable(by_protocol)) is not None:
                one_of(*_BY_PROTOCOL).check(by_protocol, protocol)
                asking, candidates = by_protocol, [_BY_PROTOCOL[protocol]]
    if found := [installed[candidate] for candidate in candidates if candidate in installed]:
        return found[0]
    guess = "" if name == "otlp" else meant(name, ["otlp", *installed])
    raise ConfigurationError(
        f"{asking} asks for the exporter {candidates[0]!r}, but none is installed{guess}; there are: "
        f'{", ".join(sorted(installed)) or "none"}; for otlp: pip install "ragspan[otlp]", and for its protocol grpc: '
        "pip install opentelemetry-exporter-otlp-proto-grpc"
    )


def make_exporter(signal: Signal, entry: EntryPoint) -> Any:
    """The exporter, which configures itself from the environment; while its endpoint is away the log has one line a minute."""
    made = entry.load()()
    if entry.name not in _BY_PROTOCOL.values():
        return made
    usual = f"http://localhost:{GRPC_PORT if entry.name == _BY_PROTOCOL['grpc'] else HTTP_PORT}"
    address, export, lost = shown_url(endpoint(signal) or usual), made.export, 0

    def exported(batch: Any, *arguments: Any, **named: Any) -> Any:
        nonlocal lost
        with hearing() as causes:
            result = export(batch, *arguments, **named)
        if causes and getattr(result, "name", "") != "SUCCESS":
            what = "spans" if signal == "traces" else signal
            lost += sum(semconv.ANSWER_STATUS in (getattr(one, "attributes", None) or ()) for one in batch)
            told = f"; the spans of {counted(lost, 'answer')} are lost so far" if lost else ""
            line = "%s cannot be sent to %s: %s; a batch is tried for OTEL_EXPORTER_OTLP_TIMEOUT, by default 10 s%s"
            _log.report(f"{signal} {address}", line, what, address, causes[0], told)
        return result

    made.export = exported
    return made


_GIVEN_UP = "due to timeout"  # says this of every batch that it gives up, whatever the cause was
_causes: ContextVar[list[str] | None] = ContextVar("ragspan_export_causes", default=None)
_log = ThrottledLog()


@contextlib.contextmanager
def hearing() -> Iterator[list[str]]:
    """Collect why an endpoint cannot be reached, by what an exporter would log inside, and let it log nothing from then on.

    Only what is logged inside is touched, in its own thread: exporters that the application has made log as ever.
    """
    for name in [name for name in logging.root.manager.loggerDict if name.startswith("opentelemetry.exporter.")]:
        logging.getLogger(name).addFilter(_is_not_heard)  # which is added once
    causes: list[str] = []
    token = _causes.set(causes)
    try:
        yield causes
    finally:
        _causes.reset(token)


def _is_not_heard(record: logging.LogRecord) -> bool:
    """A filter of the exporters' loggers."""
    causes = _causes.get()
    if causes is None or record.levelno < logging.WARNING:
        return True
    cause = cause_in(record.getMessage().replace(_GIVEN_UP, ""))
    if cause is not None:
        causes.append(cause)
    return not causes
