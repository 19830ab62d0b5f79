"""The command `ragspan worker`, and the worker's health page for Kubernetes' probes and for people."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable
from dataclasses import asdict
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated

import typer
from opentelemetry.metrics import set_meter_provider

from ragspan.arguments import counted
from ragspan.command_line import Judge, Metrics, call_at_signals, listener_at, shown_address
from ragspan.config import settings_with
from ragspan_nats.settings import BrokerAccess, Stream, WorkerOptions

if TYPE_CHECKING:  # not loaded before they are needed
    import socket

    from ragspan_nats.worker import WorkerStats

_SILENCE = 5.0  # seconds that a connection may be silent
_DEFAULTS = WorkerOptions()

app = typer.Typer(add_completion=False)


@app.command()
def worker(
    broker: Annotated[
        str | None,
        typer.Option(metavar="URL", help="nats://host:4222, or tls://…; several with commas. RAGSPAN_SINK by default."),
    ] = None,
    stream: Annotated[
        str | None, typer.Option(metavar="NAME", help="RAGSPAN_NATS_STREAM by default, else ragspan.")
    ] = None,
    concurrency: Annotated[
        int | None, typer.Option(metavar="N", help="Records scored at a time; RAGSPAN_CONCURRENCY by default, else 16.")
    ] = None,
    metrics: Metrics = None,
    judge: Judge = None,
    ack_wait: Annotated[
        float, typer.Option(metavar="SECONDS", help="After which other workers get the records of one that is silent.")
    ] = _DEFAULTS.ack_wait,
    max_deliveries: Annotated[
        int, typer.Option(metavar="N", help="Of a record, before it becomes a dead letter.")
    ] = _DEFAULTS.max_deliveries,
    drain_timeout: Annotated[
        float, typer.Option(metavar="SECONDS", help="For what is in flight, after SIGTERM; the rest is given back.")
    ] = _DEFAULTS.drain_timeout,
    export_retry_timeout: Annotated[
        float, typer.Option(metavar="SECONDS", help="For a backend that does not take the scores.")
    ] = _DEFAULTS.export_retry_timeout,
    health: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Serve /healthz and /readyz there, such as 0.0.0.0:8080.")
    ] = None,
    others: Annotated[list[str] | None, typer.Argument(hidden=True)] = None,
) -> None:
    """Score the records that applications publish to NATS JetStream, and export their traces.

    Judge, metrics, budgets and spans are configured by RAGSPAN_* variables as in an application, the export by OTEL_*. User and
    password, or a token, stand in the broker's address; RAGSPAN_NATS_CREDENTIALS_FILE, _CA_FILE and _CERTIFICATE_FILE name
    files. Any number of workers share a stream. If the stream is missing, the worker makes it.

    SIGTERM and Ctrl-C: the worker takes no new records, and finishes those in flight within --drain-timeout or gives them back.
    A second signal gives all back.

    Exit codes: 0 stopped as asked; 2 a setting or an argument is wrong.
    """
    from ragspan_nats.worker import Worker

    if others:  # which may hold a password
        raise typer.BadParameter("there are options only; the broker's address is --broker nats://host:4222")
    settings = settings_with(metrics=metrics, judge=judge, concurrency=concurrency)
    options = WorkerOptions(
        concurrency=settings.concurrency,
        ack_wait=ack_wait,
        max_deliveries=max_deliveries,
        drain_timeout=drain_timeout,
        export_retry_timeout=export_retry_timeout,
    )
    access, records = BrokerAccess.from_environment(broker), Stream.from_environment(stream)
    access.options()  # reads the certificates
    made = Worker(access, settings, stream=records, options=options)
    listener = listener_at(health) if health is not None else None
    set_meter_provider(made.meter_provider)
    page = f"; health at http://{shown_address(*listener.getsockname()[:2])}/healthz" if listener is not None else ""
    typer.echo(
        f"ragspan worker: records of stream {records.name} at {access.place}, {settings.concurrency} at a time, "
        f"{', '.join(settings.metrics)} by {settings.judge}{page}",
        err=True,
    )

    async def run() -> None:
        call_at_signals(made.stop)
        served = await serve_health(listener, made.stats) if listener is not None else None
        try:
            await made.run()
        finally:
            if served is not None:
                served.close()

    try:
        asyncio.run(run())
    finally:
        stats = made.stats()
        nacked, dead_lettered = sum(stats.nacked.values()), sum(stats.dead_lettered.values())
        scored = counted(stats.acknowledged, "record")
        typer.echo(f"ragspan worker: {scored} scored, {nacked} given back, {dead_lettered} put aside", err=True)


async def serve_health(listener: socket.socket, look: Callable[[], WorkerStats]) -> asyncio.Server:
    """Serve a worker's health by HTTP, in this event loop; `look` returns the worker's state, which both pages show as JSON.

    `/healthz` is 200 also while the broker is away: a restart would not bring it back. `/readyz` is 200 while records can come.
    """

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError):
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), _SILENCE)
            method, path = [*head.split(b" ", 2), b""][:2]
            stats = look()
            is_well = {b"/healthz": True, b"/readyz": stats.ready}.get(path.partition(b"?")[0])
            status, page = HTTPStatus.OK if is_well else HTTPStatus.SERVICE_UNAVAILABLE, asdict(stats)
            if is_well is None:
                status, page = HTTPStatus.NOT_FOUND, {"error": "there are /healthz and /readyz"}
            body = json.dumps(page).encode()
            lines = [
                f"HTTP/1.1 {status.value} {status.phrase}",
                *("Content-Type: application/json", f"Content-Length: {len(body)}", "Connection: close"),
            ]
            writer.write("\r\n".join([*lines, "", ""]).encode() + (b"" if method == b"HEAD" else body))
        writer.close()

    return await asyncio.start_server(answer, sock=listener)
