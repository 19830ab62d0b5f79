"""The command `ragspan worker --otlp`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any
from urllib.parse import urlsplit

import typer
from opentelemetry.metrics import set_meter_provider

from ragspan.arguments import counted
from ragspan.command_line import Judge, Metrics, call_at_signals, host_and_port, shown_address
from ragspan.config import Settings, settings_with
from ragspan.defaults import check_worker, engine_from, sink_from
from ragspan.engine.sampling import draw
from ragspan.engine.threads import DaemonThreads, Deadline
from ragspan.exceptions import ConfigurationError
from ragspan.telemetry.providers import endpoint, exporter_names, providers_from_environment
from ragspan_receiver.grpc_server import GRPCServer
from ragspan_receiver.receiver import Receiver
from ragspan_receiver.servers import HTTPServer
from ragspan_receiver.traces import BufferLimits

_MIB = 1024 * 1024
_FINAL_WAIT = 1.0  # seconds for the providers, whatever is left
_CONSOLE = ("console",)
_THIS_MACHINE = {"localhost", "127.0.0.1", "::1", "0.0.0.0", "::"}  # noqa: S104 - compared with, not listened at

app = typer.Typer(add_completion=False)

_DEFAULTS = BufferLimits()


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
        typer.Option(
            metavar="MIB", min=1, help="For spans of traces that have not ended; above it, senders try again later."
        ),
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
    settings = replace(settings_with(metrics=metrics, judge=judge), spans="scores")  # the answers' own are there
    if settings.sink is None and settings.emitters == ("otel",) and not exporter_names("traces"):
        settings = replace(settings, emitters=_CONSOLE)
    limits = BufferLimits(quiet=quiet, deadline=deadline, max_bytes=memory * _MIB)
    asyncio.run(_serve(settings, limits, otlp, otlp_grpc))


async def _serve(settings: Settings, limits: BufferLimits, http: str | None, grpc: str | None) -> None:
    """Receive, score and export until a signal comes."""
    is_printed = settings.sink is None and settings.emitters == _CONSOLE
    if settings.sink is None and not (is_printed and settings.enabled):
        check_worker(settings)
    url = urlsplit((endpoint("traces") if exporter_names("traces") else None) or "")
    for host, port in map(host_and_port, filter(None, (http, grpc))):
        if url.port == port and (url.hostname == host or {url.hostname, host or "::"} <= _THIS_MACHINE):
            raise ConfigurationError(
                "OTEL_EXPORTER_OTLP_ENDPOINT is the receiver's own address, and should be a tool's"
            )
    providers = providers_from_environment()
    set_meter_provider(providers.meter_provider)  # where native writers count
    sink: Any = sink_from(settings) if settings.sink else engine_from(settings, providers)

    def is_sampled(trace_id: bytes) -> bool:
        """As the engine decides it; with a sink, the fleet does."""
        return settings.sink is not None or draw(trace_id.hex()) < settings.sample_rate

    receiver = Receiver(sink, retrieval_tools=settings.retrieval_tools, is_sampled=is_sampled, limits=limits)
    receiver.count_with(providers.meter_provider)
    call_at_signals(receiver.stop)
    servers: list[HTTPServer | GRPCServer] = []
    try:
        shown = []
        for make, address in ((HTTPServer, http), (GRPCServer, grpc)):
            if address is not None:
                server: HTTPServer | GRPCServer = make(receiver, address)
                servers.append(server)
                await server.start()
                where = shown_address(host_and_port(address)[0], server.port)
                shown.append(where if make is GRPCServer else f"http://{where}/v1/traces")
        about = "for the fleet" if settings.sink else f"scored by {settings.judge}: {', '.join(settings.metrics)}"
        typer.echo(f"ragspan worker: OTLP at {' and '.join(shown)}; answers are {about}", err=True)
        if is_printed:
            hint = "OTEL_EXPORTER_OTLP_ENDPOINT sends their scores to a tool"
            typer.echo(f"ragspan worker: answers are printed; {hint}", err=True)
        await asyncio.to_thread(receiver.read_until_stopped)
        # The servers run on: senders get the answer to try again elsewhere, and probes are answered.
        deadline = Deadline(settings.exit_timeout)
        await asyncio.to_thread(receiver.finish, deadline.remaining)
        await asyncio.to_thread(sink.shutdown, deadline.remaining)
    finally:
        await asyncio.gather(*(server.stop() for server in servers))
    # What takes longer ends with the process.
    sending = DaemonThreads(1, name="ragspan-exit").submit(providers.shutdown)
    done, _ = await asyncio.wait([asyncio.wrap_future(sending)], timeout=max(deadline.remaining, _FINAL_WAIT))
    lost = "" if done else ", the last scores could not be sent in time"
    typer.echo(f"ragspan worker: {_summary(receiver.figures())}{lost}", err=True)


def _summary(figures: Mapping[str, Any]) -> str:
    """What became of all that was taken."""
    traces, answers = figures.get("traces.ended", 0), figures.get("answers", {})
    found = f"{counted(figures.get('records', 0), 'answer')} in {'it' if traces == 1 else 'them'}"
    parts = [counted(traces, "trace"), found]
    dropped = answers.get("dropped", {})
    parts += [f"{counted(number, 'answer')} dropped ({reason})" for reason, number in dropped.items()]
    for name, words in (("traces.cut_off", "cut off"), ("traces.abandoned", "not read in time")):
        parts += [f"{counted(figures[name], 'trace')} {words}"] if figures.get(name) else []
    parts += [f"{counted(figures['requests.refused'], 'request')} refused"] if "requests.refused" in figures else []
    return ", ".join(parts)
