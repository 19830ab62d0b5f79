"""OpenTelemetry's providers: made as the standard `OTEL_*` variables say, flushed, waited for at their end, and asked who reads them.

The SDK itself reads samplers, resources, limits and batches from the environment. Only the choice of exporters is made here: the SDK
leaves it to distributions. What exporters log of an endpoint that cannot be reached becomes one line a minute with the cause.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import netrc  # noqa: F401 - else `requests` imports it at the first export, in a thread, and a fork may come at that moment
import re
import sys
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points, version
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from opentelemetry import metrics, trace

from ragspan.addresses import cause_in, shown_url
from ragspan.arguments import counted, meant, one_of
from ragspan.config import variable
from ragspan.exceptions import ConfigurationError
from ragspan.process import in_use
from ragspan.telemetry import semconv
from ragspan.telemetry.emitter_protocols import Engine
from ragspan.telemetry.otel_context import suppressed
from ragspan.throttled_log import ThrottledLog, log_line

if TYPE_CHECKING:
    from opentelemetry.sdk._logs import LoggerProvider
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.trace import TracerProvider

Signal: TypeAlias = Literal["traces", "metrics", "logs"]
ExporterMaker: TypeAlias = "Callable[[Signal, EntryPoint], Any]"

_BY_PROTOCOL = {"grpc": "otlp_proto_grpc", "http/protobuf": "otlp_proto_http"}
GRPC_PORT, HTTP_PORT = 4317, 4318
SDK_IS_OFF = "OTEL_SDK_DISABLED is true"


@dataclass(frozen=True, kw_only=True)
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
        ConfigurationError: one of them is not installed, the protocol is unknown, or an address of HTTP has no scheme.
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


def make_exporter(signal: Signal, entry: EntryPoint, *, tries_once: bool = True) -> Any:
    """The environment's exporter. The log has a line a minute while its endpoint is away, and if it `tries_once` what is lost, also at the end."""
    named = next(filter(variable, _endpoint_variables(signal)), None)
    if named and "://" not in (variable(named) or "") and entry.name == _BY_PROTOCOL["http/protobuf"]:
        raise ConfigurationError(f"{named} should be an address such as http://localhost:{HTTP_PORT}, with http://")
    made = entry.load()()
    if entry.name not in _BY_PROTOCOL.values():
        return made
    usual = f"http://localhost:{GRPC_PORT if entry.name == _BY_PROTOCOL['grpc'] else HTTP_PORT}"
    address, export, shutdown, lost = shown_url(endpoint(signal) or usual), made.export, made.shutdown, 0

    def exported(batch: Any, *arguments: Any, **named: Any) -> Any:
        nonlocal lost
        with collecting_causes() as causes:
            result = export(batch, *arguments, **named)
        if causes and getattr(result, "name", "") != "SUCCESS":
            what = "spans" if signal == "traces" else signal
            lost += tries_once * sum(semconv.ANSWER_STATUS in (getattr(one, "attributes", None) or ()) for one in batch)
            told = f"; the spans of {counted(lost, 'answer')} are lost so far" if lost else ""
            line = "%s cannot be sent to %s: %s; a batch is tried for OTEL_EXPORTER_OTLP_TIMEOUT, by default 10 s%s"
            _log.report(f"{signal} {address}", line, what, address, causes[0], told)
        return result

    def shut_down(*arguments: Any, **named: Any) -> None:
        shutdown(*arguments, **named)
        if lost:
            log_line(logging.WARNING, "the spans of %s could not be sent to %s", counted(lost, "answer"), address)

    made.export, made.shutdown = exported, shut_down
    return made


_GIVEN_UP = "due to timeout"  # says this of every batch that it gives up, whatever the cause was
_causes: ContextVar[list[str] | None] = ContextVar("ragspan_export_causes", default=None)
_log = ThrottledLog()


@contextlib.contextmanager
def collecting_causes() -> Iterator[list[str]]:
    """Collect why an endpoint cannot be reached, by what an exporter would log inside, and let it log nothing from then on.

    Only what is logged inside is touched, in its own thread: exporters that the application has made log as ever.
    """
    for name in [name for name in logging.root.manager.loggerDict if name.startswith("opentelemetry.exporter.")]:
        logging.getLogger(name).addFilter(_is_not_collected)  # which is added once
    causes: list[str] = []
    token = _causes.set(causes)
    try:
        yield causes
    finally:
        _causes.reset(token)


def _is_not_collected(record: logging.LogRecord) -> bool:
    """A filter of the exporters' loggers."""
    causes = _causes.get()
    if causes is None or record.levelno < logging.WARNING:
        return True
    cause = cause_in(record.getMessage().replace(_GIVEN_UP, ""))
    if cause is not None:
        causes.append(cause)
    return not causes


# What is written to

_FLUSH = 30.0  # seconds for one provider at most, the SDK's default
_OVER = "The TracerProvider was shut down: answers have no spans any more, and no judge is paid for them."
_TOO_EARLY = "the TracerProvider was shut down before the scores of all answers were there: shut ragspan down first, or call flush()"

_retrying: weakref.WeakSet[Any] = weakref.WeakSet()
"""The exporters that keep spans: their SDK does not flush an exporter, it only calls `export`."""
flush_as_well = _retrying.add
"""Flush this exporter after the providers, by its `force_flush`; its `stats`, if it has any, tell how many spans it keeps."""


def spans_waiting() -> int:
    """How many spans those exporters keep."""
    return sum(exporter.stats().waiting for exporter in list(_retrying) if hasattr(exporter, "stats"))


def flush_spans(timeout: float) -> bool:
    """Have the spans exported that wait at any provider that somebody here writes to; True if all were in time.

    What an exporter cannot send now stays with it, and is not waited for.
    """
    with suppressed():
        return flush_all(in_use.provider_ends, timeout, until_refused=True)


def flush_all(providers: Iterable[Any], timeout: float, **how: bool) -> bool:
    """Flush the providers one after the other, then the exporters that keep spans, like `how`; True if all succeeded."""
    ends_at, is_done = time.monotonic() + timeout, True
    flushed: list[tuple[Any, dict[str, bool]]] = [
        (one, {}) for one in providers if callable(getattr(one, "force_flush", None))
    ]
    for one, options in [*flushed, *((exporter, how) for exporter in list(_retrying))]:
        seconds = min(max(0.0, ends_at - time.monotonic()), _FLUSH)
        try:
            is_done = one.force_flush(int(seconds * 1000), **options) is not False and is_done
        except Exception as error:  # noqa: BLE001 - a provider of the application's
            is_done = False
            log_line(logging.WARNING, "flushing %s failed: %s", type(one).__name__, type(error).__name__)
    return is_done


class ProviderEnd:
    """Waits for the end of one provider: a span processor of the SDK's that does nothing with spans.

    Many programs end with `provider.shutdown()` while answers wait for their scores, and a provider that is shut down drops the spans
    that end after it. So engines get their `exit_timeout` before, and from then on nothing is judged for this provider.
    """

    def __init__(self) -> None:
        self.is_over = False
        self.engines: weakref.WeakSet[Engine] = weakref.WeakSet()

    def on_start(self, span: Any, parent_context: Any = None) -> None:
        """Let the span pass."""

    on_end = _on_ending = on_start

    def shutdown(self) -> None:
        """Let the engines finish, all in the same time."""
        if self.is_over:
            return
        began = time.monotonic()
        done = [engine.flush(max(0.0, engine.exit_timeout + began - time.monotonic())) for engine in list(self.engines)]
        self.is_over = True
        if not all(done):
            log_line(logging.WARNING, _TOO_EARLY)

    def force_flush(self, timeout_millis: int = 30_000) -> bool:  # noqa: ARG002 - the SDK's signature
        """True: nothing waits here."""
        return True


def exports_spans(provider: Any, engines: Iterable[Engine], log: ThrottledLog) -> bool:
    """Whether somebody gets the spans of this provider, which waits for these engines before it ends.

    Where that cannot be seen, it is taken to be so.
    """
    if isinstance(provider, (trace.ProxyTracerProvider, trace.NoOpTracerProvider)):
        return False
    sdk, end = sys.modules.get("opentelemetry.sdk.trace"), None
    every: Any = getattr(provider, "_active_span_processor", None)
    if sdk is not None and isinstance(provider, sdk.TracerProvider):
        end = in_use.provider_ends.get(provider)
        if end is None:
            end = in_use.provider_ends.setdefault(provider, ProviderEnd())
            # Before the exporting processors: the SDK shuts them down in their order, and has no other way to come first.
            if isinstance(getattr(every, "_span_processors", None), tuple):
                with every._lock:  # noqa: SLF001
                    every._span_processors = (end, *every._span_processors)  # noqa: SLF001
            else:
                provider.add_span_processor(end)
        end.engines.update(engines)
        if end.is_over:
            log.report("provider_over", _OVER)
            return False
    processors = getattr(every, "_span_processors", None)
    return processors is None or any(one is not end for one in processors)


def is_read(provider: object) -> bool:
    """Whether this provider of metrics or of logs is an SDK's, is not switched off, and has somebody to send to."""
    if not callable(getattr(provider, "force_flush", None)) or getattr(provider, "_disabled", False):
        return False
    processors = getattr(provider, "_multi_log_record_processor", None)
    readers = getattr(provider, "_metric_readers", getattr(processors, "_log_record_processors", None))
    return readers is None or bool(readers)


@functools.cache
def scope() -> tuple[str, str, str]:
    """Name, version and schema of what we write, for the providers."""
    return semconv.SCOPE, version("ragspan"), semconv.SCHEMA_URL


def meter_of(provider: metrics.MeterProvider) -> metrics.Meter:
    return provider.get_meter(*scope())
