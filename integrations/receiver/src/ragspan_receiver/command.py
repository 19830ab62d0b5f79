"""The command `ragspan worker --otlp`. It refuses to send the scores to itself, where nobody would see them."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, Protocol, cast
from urllib.parse import urlsplit

import typer
from opentelemetry.metrics import set_meter_provider

from ragspan.addresses import shown_url
from ragspan.command_line import Judge, Metrics, call_at_signals, host_and_port, shown_address
from ragspan.config import Settings, settings_with
from ragspan.counted import counted
from ragspan.defaults import check_worker, engine_from, sink_from
from ragspan.engine.processing import Deadline, call_guarded, draw
from ragspan.exceptions import ConfigurationError
from ragspan.records import RecordSink
from ragspan.telemetry.environment import (
    endpoint,
    exporter_is_configured,
    exporter_names,
    exporter_of,
    providers_from_environment,
)
from ragspan_receiver.grpc_server import GRPCServer
from ragspan_receiver.intake import Intake
from ragspan_receiver.receiver import Receiver
from ragspan_receiver.servers import HTTPServer
from ragspan_receiver.traces import BufferLimits

_MIB = 1024 * 1024
_LAST_WORDS = 1.0  # seconds for the providers, whatever is left
_CONSOLE = ("console",)
_ENDPOINTS = {"otlp_proto_grpc": "http://localhost:4317"}
_HTTP_ENDPOINT = "http://localhost:4318"
_PORTS = {"http": 80, "https": 443}
_THIS_MACHINE = frozenset({"0.0.0.0", "::", "127.0.0.1", "::1", "localhost"})  # noqa: S104  compared, not listened at

app = typer.Typer(add_completion=False)

_DEFAULTS = BufferLimits()


class _Sink(RecordSink, Protocol):
    def shutdown(self, timeout: float) -> object: ...


@app.command()
def worker(
    otlp: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Receive OTLP over HTTP there, such as 127.0.0.1:4318.")
    ] = None,
    otlp_grpc: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Receive OTLP over gRPC there, such as 127.0.0.1:4317.")
    ] = None,
    quiet: Annotated[
        float, typer.Option(metavar="SECONDS", help="A trace with a root has ended after this time without a new span.")
    ] = _DEFAULTS.quiet,
    deadline: Annotated[
        float, typer.Option(metavar="SECONDS", help="The same for a trace whose root does not come.")
    ] = _DEFAULTS.deadline,
    memory: Annotated[
        int,
        typer.Option(metavar="MIB", help="For spans of traces that have not ended; above it, senders try again later."),
    ] = _DEFAULTS.max_bytes // _MIB,
    metrics: Metrics = None,
    judge: Judge = None,
) -> None:
    """Score the answers in traces that other programs send by OTLP, and export the scores as spans of the same traces.

    It reads the spans of OpenInference, of OpenTelemetry's GenAI conventions and of Traceloop, in any language. Judge, metrics
    and budgets are configured by RAGSPAN_* variables as in an application, the export by OTEL_*; without an exporter each answer
    is printed. With RAGSPAN_SINK the answers go to a fleet of workers. OTLP over HTTP also serves /healthz and /readyz.

    SIGTERM and Ctrl-C: no new spans are taken; those that came are scored and exported within RAGSPAN_EXIT_TIMEOUT.

    Exit codes: 0 stopped as asked; 2 a setting or an argument cannot be used.
    """
    settings = replace(
        settings_with(metrics=metrics, judge=judge),
        spans="scores",  # the answers' spans are there already
    )
    if settings.sink is None and settings.emitters == ("otel",) and not exporter_is_configured():
        settings = replace(settings, emitters=_CONSOLE)
    limits = BufferLimits(quiet=quiet, deadline=deadline, max_bytes=memory * _MIB)
    asyncio.run(_serve(settings, limits, otlp, otlp_grpc))


async def _serve(settings: Settings, limits: BufferLimits, http: str | None, grpc: str | None) -> None:
    """Receive, score and export until a signal comes.

    Raises:
        ConfigurationError: an address or a setting cannot be used.
    """
    if http is None and grpc is None:
        raise ConfigurationError("name an address after --otlp or --otlp-grpc")
    is_printed = settings.sink is None and settings.emitters == _CONSOLE
    if settings.sink is None and not (is_printed and settings.enabled):
        check_worker(settings)
    providers = providers_from_environment()
    set_meter_provider(providers.meter_provider)  # where native writers count
    if settings.sink is None:
        sink: _Sink = engine_from(settings, providers)
    else:
        sink = cast("_Sink", sink_from(settings))
    receiver = Receiver(
        sink,
        retrieval_tools=settings.retrieval_tools,
        is_sampled=partial(_is_sampled, settings),
        limits=limits,
    )
    receiver.count_with(providers.meter_provider)
    call_at_signals(receiver.stop)
    intake = Intake(receiver)
    servers: list[HTTPServer | GRPCServer] = []
    try:
        addresses = []
        for make, address in ((HTTPServer, http), (GRPCServer, grpc)):
            if address is not None:
                servers.append(make(intake, address))
                addresses.append(await _start(servers[-1], address))
        about = "for the fleet" if settings.sink else f"scored by {settings.judge}: {', '.join(settings.metrics)}"
        typer.echo(f"ragspan worker: OTLP at {' and '.join(addresses)}; answers are {about}", err=True)
        if is_printed:
            hint = "OTEL_EXPORTER_OTLP_ENDPOINT sends their scores to a tool"
            typer.echo(f"ragspan worker: answers are printed; {hint}", err=True)
        await receiver.run()
        # The servers run on: senders get the answer to try again elsewhere, and probes are answered.
        deadline = Deadline(settings.exit_timeout)
        await asyncio.to_thread(receiver.finish, deadline.remaining)
        await asyncio.to_thread(sink.shutdown, deadline.remaining)
    finally:
        await asyncio.gather(*(server.stop() for server in servers))
    is_sent = await _is_done_within(max(deadline.remaining, _LAST_WORDS), providers.shutdown)
    lost = "" if is_sent else ", the last scores could not be sent in time"
    typer.echo(f"ragspan worker: {_summary(receiver.figures())}{lost}", err=True)


def _summary(figures: Mapping[str, Any]) -> str:
    """What became of all that was taken."""
    traces, answers = figures.get("traces.ended", 0), figures.get("answers", {})
    parts = [
        f"{counted(traces, 'trace')}, {counted(figures.get('records', 0), 'answer')} in {'it' if traces == 1 else 'them'}"
    ]
    parts += [
        f"{counted(number, 'answer')} dropped ({reason})" for reason, number in answers.get("dropped", {}).items()
    ]
    for name, words in (("traces.cut_off", "cut off"), ("traces.abandoned", "not read in time")):
        parts += [f"{counted(figures[name], 'trace')} {words}"] if figures.get(name) else []
    parts += [f"{counted(figures['requests.refused'], 'request')} refused"] if "requests.refused" in figures else []
    return ", ".join(parts)


async def _is_done_within(seconds: float, work: Callable[[], object]) -> bool:
    """Whether the work ends in time; what takes longer ends with the process."""
    done = threading.Event()

    def run() -> None:
        call_guarded(work)
        done.set()

    threading.Thread(target=run, daemon=True).start()
    return await asyncio.to_thread(done.wait, seconds)


async def _start(server: HTTPServer | GRPCServer, address: str) -> str:
    """Start a server; returns where it is."""
    host, _ = host_and_port(address)
    check_destination(host, server.port)
    await server.start()
    shown = shown_address(host, server.port)
    return f"http://{shown}/v1/traces" if isinstance(server, HTTPServer) else shown


def _is_sampled(settings: Settings, trace_id: bytes) -> bool:
    """Whether the answers of this trace are scored, as the engine decides it; with a sink, the fleet decides."""
    rate = settings.sample_rate
    return settings.sink is not None or rate >= 1 or draw(trace_id.hex()) < rate


def check_destination(host: str, port: int) -> None:
    """Raise a `ConfigurationError` if spans are exported to the receiver that listens there."""
    own = {host, *_THIS_MACHINE, socket.gethostname()} if host in _THIS_MACHINE else {host}
    for name in exporter_names("traces"):
        if "otlp" not in name:
            continue
        target = endpoint("traces") or _ENDPOINTS.get(exporter_of("traces", name).name, _HTTP_ENDPOINT)
        try:
            parts = urlsplit(target if "://" in target else f"http://{target}")
            is_itself = parts.hostname in own and port == (parts.port or _PORTS.get(parts.scheme))
        except ValueError:  # the exporter will say what is wrong with it
            continue
        if is_itself:
            raise ConfigurationError(
                f"scores would be sent to {shown_url(target)}, which is this receiver: set OTEL_EXPORTER_OTLP_ENDPOINT to the "
                "backend that shows them, or have the receiver listen elsewhere"
            )
