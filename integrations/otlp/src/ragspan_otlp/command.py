"""The command `ragspan worker --otlp`."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from dataclasses import replace
from functools import partial
from typing import Annotated, Protocol, cast

import typer
from opentelemetry.metrics import set_meter_provider

from ragspan.config import Settings, process_environment
from ragspan.defaults import check_worker, engine_from, sink_from
from ragspan.engine._scoring import draw
from ragspan.exceptions import ConfigurationError
from ragspan.records import RecordSink
from ragspan.telemetry.environment import exporter_is_configured, providers_from_environment
from ragspan_otlp.buffer import BufferLimits
from ragspan_otlp.destination import check_destination, listening, parts_of
from ragspan_otlp.http import Server
from ragspan_otlp.readers import records_of
from ragspan_otlp.receiver import Receiver

_MIB = 1024 * 1024
_CONSOLE = ("console",)

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
        float, typer.Option(metavar="SECONDS", help="Without a new span, after which a trace with a root has ended.")
    ] = _DEFAULTS.quiet,
    deadline: Annotated[
        float, typer.Option(metavar="SECONDS", help="Likewise of a trace whose root does not come.")
    ] = _DEFAULTS.deadline,
    memory: Annotated[
        int, typer.Option(metavar="MIB", help="For spans whose traces have not ended; beyond, senders try again later.")
    ] = _DEFAULTS.max_bytes // _MIB,
    metrics: Annotated[
        str | None, typer.Option(metavar="NAMES", help="With commas between them; RAGSPAN_METRICS by default.")
    ] = None,
    judge: Annotated[
        str | None, typer.Option(metavar="JUDGE", help="overlap or openai:<model>; RAGSPAN_JUDGE by default.")
    ] = None,
) -> None:
    """Score the answers in traces that other programs send by OTLP, and export the scores as spans of the same traces.

    It reads the spans of OpenInference, of OpenTelemetry's GenAI conventions and of Traceloop, in any language. Judge, metrics
    and budgets are configured by RAGSPAN_* variables as in an application, the export by OTEL_*; without an exporter each answer
    is printed. With RAGSPAN_SINK the answers go to a fleet of workers. /healthz and /readyz are served where OTLP over HTTP is.

    SIGTERM and Ctrl-C: no new spans; what is there is scored and exported within RAGSPAN_EXIT_TIMEOUT.

    Exit codes: 0 stopped as asked; 2 a setting or an argument cannot be used.
    """
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("ragspan").setLevel(logging.INFO)
    named = {"RAGSPAN_METRICS": metrics, "RAGSPAN_JUDGE": judge}
    try:
        chosen = {name: value for name, value in named.items() if value is not None}
        settings = replace(
            Settings.from_environment({**process_environment(), **chosen}),
            spans="scores",  # the answers' spans are there already
            export="application",
            drain_on_sigterm=False,  # this command drains
        )
        if settings.sink is None and settings.emitters == ("otel",) and not exporter_is_configured():
            settings = replace(settings, emitters=_CONSOLE)
        limits = BufferLimits(quiet=quiet, deadline=deadline, max_bytes=memory * _MIB)
        asyncio.run(_serve(settings, limits, otlp, otlp_grpc))
    except ConfigurationError as error:
        typer.echo(f"ragspan worker: {error}", err=True)
        raise typer.Exit(2) from None


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
    sink = engine_from(settings, providers) if settings.sink is None else cast("_Sink", sink_from(settings))
    read = partial(records_of, retrieval_tools=settings.retrieval_tools)
    receiver = Receiver(sink, read=read, is_sampled=partial(_is_sampled, settings), limits=limits)
    receiver.count_with(providers.meter_provider)
    running = asyncio.ensure_future(receiver.run())
    async with contextlib.AsyncExitStack() as servers:
        places = []
        if http is not None:
            places.append(await _serve_http(servers, receiver, http))
        if grpc is not None:
            places.append(await _serve_grpc(servers, receiver, grpc))
        about = "for the fleet" if settings.sink else f"scored by {settings.judge}: {', '.join(settings.metrics)}"
        typer.echo(f"ragspan worker: OTLP at {' and '.join(places)}; answers are {about}", err=True)
        if is_printed:
            typer.echo(
                "ragspan worker: answers are printed; OTEL_EXPORTER_OTLP_ENDPOINT sends their scores to a tool",
                err=True,
            )
        await asyncio.wait({running, asyncio.ensure_future(_stopped())}, return_when=asyncio.FIRST_COMPLETED)
    receiver.stop()
    await running
    await asyncio.to_thread(sink.shutdown, settings.exit_timeout)
    for provider in (providers.tracer_provider, providers.meter_provider, providers.logger_provider):
        if provider is not None:
            await asyncio.to_thread(provider.shutdown)
    counts = receiver.counts
    typer.echo(f"ragspan worker: {counts['traces.ended']} traces, {counts['records']} answers in them", err=True)


def _is_sampled(settings: Settings, trace_id: bytes) -> bool:
    """Whether a metric scores the answers of this trace, by the engine's own draw; with a sink that is the fleet's business."""
    rates = [settings.metric_sample_rates.get(name, settings.sample_rate) for name in settings.metrics]
    return settings.sink is not None or max(rates) >= 1 or draw(trace_id.hex()) < max(rates)


async def _serve_http(servers: contextlib.AsyncExitStack, receiver: Receiver, address: str) -> str:
    listener = listening(address)
    servers.callback(listener.close)
    host, port = listener.getsockname()[:2]
    check_destination(host, port)
    server = Server(receiver)
    serving = asyncio.create_task(server.serve(sockets=[listener]))

    async def stop() -> None:
        server.should_exit = True
        await serving

    servers.push_async_callback(stop)
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/v1/traces"


async def _serve_grpc(servers: contextlib.AsyncExitStack, receiver: Receiver, address: str) -> str:
    from ragspan_otlp.grpc import GRPCServer

    host, _ = parts_of(address)
    server = GRPCServer(receiver, address)
    check_destination(host, server.port)
    await server.start()
    servers.push_async_callback(server.stop)
    return f"{host}:{server.port}"


async def _stopped() -> None:
    """Wait until a signal says so."""
    loop, stopped = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        with contextlib.suppress(NotImplementedError):  # Windows, where Ctrl-C raises KeyboardInterrupt
            loop.add_signal_handler(number, stopped.set)
    await stopped.wait()
