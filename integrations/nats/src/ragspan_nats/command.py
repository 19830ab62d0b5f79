"""The command `ragspan worker`, and the page that says whether the worker is well: for Kubernetes' probes and for people.

`/healthz` is 200 as long as the worker's loop turns, also while the broker is away: to start it anew would not bring the broker
back. `/readyz` is 200 while records can come. Both hold the counts as JSON. The page has threads of its own, so that it can tell
of a loop that hangs: one for each connection, of which there are 64 at most; one that is silent for five seconds ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import signal
import socket
import threading
from collections.abc import Callable
from dataclasses import asdict
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from socketserver import ThreadingTCPServer
from typing import Annotated, Any, cast

import typer
from opentelemetry.metrics import set_meter_provider

from ragspan.arguments import wrong
from ragspan.config import Settings, process_environment
from ragspan.exceptions import ConfigurationError
from ragspan_nats.settings import BrokerAccess, Stream, WorkerOptions
from ragspan_nats.worker import Worker, WorkerStats

_SILENCE = 5.0  # seconds that a connection may say nothing
_MAX_CONNECTIONS = 64
_LAST_PORT = 65_535

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
        access = BrokerAccess.from_environment(broker)
        access.options()  # reads the certificates
        records = Stream.from_environment(stream)
        made = Worker(
            access,
            settings,
            stream=records,
            options=WorkerOptions(
                concurrency=settings.concurrency,
                ack_wait=ack_wait,
                max_deliveries=max_deliveries,
                max_ack_pending=max_ack_pending,
                drain_timeout=drain_timeout,
                export_retry_timeout=export_retry_timeout,
            ),
        )
        page = HealthPage(health, made.stats) if health is not None else None
    except ConfigurationError as error:
        typer.echo(f"ragspan worker: {error}", err=True)
        raise typer.Exit(2) from None
    set_meter_provider(made.meter_provider)
    about = f"{settings.concurrency} at a time, {', '.join(settings.metrics)} by {settings.judge}"
    where = f"; health at http://{page.address}/healthz" if page is not None else ""
    typer.echo(f"ragspan worker: records of stream {records.name} at {access.place}, {about}{where}", err=True)
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


class HealthPage(ThreadingTCPServer):
    """Serves a worker's health by HTTP.

    Args:
        address: `host:port`; port 0 takes a free one.
        look: how it is at the moment; called in the page's threads.

    Raises:
        ConfigurationError: the address is none, or cannot be had.
    """

    allow_reuse_address = daemon_threads = True
    request_queue_size = 128

    def __init__(self, address: str, look: Callable[[], WorkerStats]) -> None:
        host, colon, port = address.rpartition(":")
        if not (colon and port.isdecimal() and int(port) <= _LAST_PORT):
            raise wrong("the address of the health page", address, "like 127.0.0.1:8080")
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.look = look
        self._room = threading.BoundedSemaphore(_MAX_CONNECTIONS)
        self._thread = threading.Thread(target=self.serve_forever, args=(0.1,), name="ragspan-health", daemon=True)
        try:
            super().__init__((host.strip("[]"), int(port)), _Request)
        except (OSError, ValueError) as error:
            raise ConfigurationError(f"the health page cannot be served at {address}: {error}") from None

    @property
    def address(self) -> str:
        """Where it is served."""
        host, port = map(str, self.server_address[:2])
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        if self._thread.ident is not None:
            self.shutdown()
        self.server_close()

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._room.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._room.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """The client hung up."""


class _Request(BaseHTTPRequestHandler):
    timeout = _SILENCE

    def do_GET(self) -> None:
        stats = cast("HealthPage", self.server).look()
        known = {"/healthz": stats.alive, "/readyz": stats.alive and stats.ready}
        is_well = known.get(self.path.partition("?")[0])
        status = HTTPStatus.NOT_FOUND
        page: dict[str, Any] = {"error": "there are /healthz and /readyz"}
        if is_well is not None:
            status = HTTPStatus.OK if is_well else HTTPStatus.SERVICE_UNAVAILABLE
            page = asdict(stats)
        body = json.dumps(page).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    do_HEAD = do_GET  # noqa: N815 - likewise

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - likewise
        """Say nothing: probes ask every few seconds."""
