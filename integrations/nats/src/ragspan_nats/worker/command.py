"""The command `ragspan worker`."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from typing import Annotated

import typer
from opentelemetry.metrics import set_meter_provider

from ragspan.config import Settings, process_environment
from ragspan.exceptions import ConfigurationError
from ragspan_nats.access import BrokerAccess, broker_address
from ragspan_nats.streams import StreamNames, stream_limits, stream_name
from ragspan_nats.worker.counts import WorkerStats
from ragspan_nats.worker.health import HealthPage
from ragspan_nats.worker.options import WorkerOptions
from ragspan_nats.worker.worker import Worker

app = typer.Typer(add_completion=False)

_DEFAULTS = WorkerOptions()


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
    metrics: Annotated[
        str | None, typer.Option(metavar="NAMES", help="With commas between them; RAGSPAN_METRICS by default.")
    ] = None,
    judge: Annotated[
        str | None, typer.Option(metavar="JUDGE", help="overlap or openai:<model>; RAGSPAN_JUDGE by default.")
    ] = None,
    ack_wait: Annotated[
        float, typer.Option(metavar="SECONDS", help="After which other workers get the records of one that is silent.")
    ] = _DEFAULTS.ack_wait,
    max_deliveries: Annotated[
        int, typer.Option(metavar="N", help="Of a record, before it becomes a dead letter.")
    ] = _DEFAULTS.max_deliveries,
    max_ack_pending: Annotated[
        int, typer.Option(metavar="N", help="Records that all workers together may have in flight.")
    ] = _DEFAULTS.max_ack_pending,
    drain_timeout: Annotated[
        float, typer.Option(metavar="SECONDS", help="For what is in flight, after SIGTERM; the rest is given back.")
    ] = _DEFAULTS.drain_timeout,
    export_retry_timeout: Annotated[
        float, typer.Option(metavar="SECONDS", help="For a backend that does not take the scores.")
    ] = _DEFAULTS.export_retry_timeout,
    health: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Serve /healthz and /readyz there, such as 0.0.0.0:8080.")
    ] = None,
) -> None:
    """Score the records that applications publish to NATS JetStream, and export their traces.

    Judge, metrics, budgets and spans are configured by RAGSPAN_* variables as in an application, the export by OTEL_*, the
    broker's credentials by RAGSPAN_NATS_USER and _PASSWORD, _TOKEN, _NKEY_FILE, _CREDENTIALS_FILE, _CA_FILE,
    _CERTIFICATE_FILE and _KEY_FILE. Any number of workers share a stream. Where it is missing it is made, with the limits of
    RAGSPAN_NATS_MAX_RECORDS, _MAX_BYTES and _REPLICAS.

    SIGTERM and Ctrl-C: no new records, those in flight are finished within --drain-timeout or given back; a second one gives all back.

    Exit codes: 0 stopped as asked; 2 a setting or an argument cannot be used.
    """
    # Not INFO for all: the judges' HTTP client would tell of every single request.
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("ragspan").setLevel(logging.INFO)
    named = {"RAGSPAN_METRICS": metrics, "RAGSPAN_JUDGE": judge, "RAGSPAN_CONCURRENCY": concurrency}
    try:
        chosen = {name: str(value) for name, value in named.items() if value is not None}
        settings = Settings.from_environment({**process_environment(), **chosen})
        access = BrokerAccess.from_environment(broker_address(broker))
        access.options()  # reads the certificates
        names = StreamNames(stream=stream_name(stream))
        made = Worker(
            access,
            settings,
            names=names,
            limits=stream_limits(),
            options=WorkerOptions(
                concurrency=settings.concurrency,
                ack_wait=ack_wait,
                max_deliveries=max_deliveries,
                max_ack_pending=max_ack_pending,
                drain_timeout=drain_timeout,
                export_retry_timeout=export_retry_timeout,
            ),
        )
        page = HealthPage(health, made.health) if health is not None else None
    except ConfigurationError as error:
        typer.echo(f"ragspan worker: {error}", err=True)
        raise typer.Exit(2) from None
    set_meter_provider(made.meter_provider)
    about = f"{settings.concurrency} at a time, {', '.join(settings.metrics)} by {settings.judge}"
    where = f"; health at http://{page.address}/healthz" if page is not None else ""
    typer.echo(f"ragspan worker: records of stream {names.stream} at {access.place}, {about}{where}", err=True)
    try:
        asyncio.run(_until_stopped(made, page))
    finally:
        typer.echo(f"ragspan worker: {_summary(made.stats())}", err=True)


def _summary(stats: WorkerStats) -> str:
    nacked, dead_lettered = sum(stats.nacked.values()), sum(stats.dead_lettered.values())
    return f"{stats.acknowledged} records scored, {nacked} given back, {dead_lettered} put aside"


async def _until_stopped(worker: Worker, page: HealthPage | None) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        with contextlib.suppress(NotImplementedError):  # Windows, where Ctrl-C raises KeyboardInterrupt
            loop.add_signal_handler(number, worker.stop)
    if page is not None:
        page.start()
    try:
        await worker.run()
    finally:
        if page is not None:
            page.stop()
