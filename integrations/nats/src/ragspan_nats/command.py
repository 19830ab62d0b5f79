"""The command `ragspan worker`, and the page that says whether the worker is well: for Kubernetes' probes and for people.

`/healthz` is 200 as long as the worker's loop turns, also while the broker is away: to start it anew would not bring the broker
back. `/readyz` is 200 while records can come. Both hold the counts as JSON.

Guarantees of the page:
- One thread of its own serves all requests, so that it can tell of a loop that hangs.
- A connection is over after five seconds, whatever its client does. Where there are too many, the oldest ends for each new one:
  a probe asks at once and has its answer in milliseconds, so the oldest are of those who ask nothing.
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
from http import HTTPStatus
from typing import Annotated, Any, cast

import typer
from opentelemetry.metrics import set_meter_provider

from ragspan.arguments import wrong
from ragspan.config import Settings, process_environment
from ragspan.exceptions import ConfigurationError
from ragspan_nats.settings import (
    BrokerAccess,
    StreamNames,
    WorkerOptions,
    broker_address,
    stream_limits,
    stream_name,
)
from ragspan_nats.worker import Health, Worker, WorkerStats

_PATIENCE = 5.0  # seconds for a request and its answer
_MAX_HEAD = 16 * 1024  # bytes of a request
_MAX_CONNECTIONS = 256
_BACKLOG = 128
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


class HealthPage:
    """Serves a worker's health by HTTP.

    Args:
        address: `host:port`; port 0 takes a free one.
        look: how it is at the moment; called in the page's thread.

    Raises:
        ConfigurationError: the address is none, or cannot be had.
    """

    def __init__(self, address: str, look: Callable[[], Health]) -> None:
        host, colon, port = address.rpartition(":")
        if not (colon and port.isdecimal()):
            raise wrong("the address of the health page", address, "like 127.0.0.1:8080")
        try:
            self._socket = _listening(host.strip("[]"), int(port))
        except (OSError, OverflowError, ValueError) as error:
            raise ConfigurationError(f"the health page cannot be served at {address}: {error}") from None
        self._address = self._socket.getsockname()
        self._look = look
        self._loop = asyncio.new_event_loop()
        self._stopping = asyncio.Event()
        self._open: dict[asyncio.Task[None], None] = {}
        """The connections, the oldest first."""
        self._thread = threading.Thread(target=self._main, name="ragspan-health", daemon=True)

    @property
    def address(self) -> str:
        """Where it is served."""
        host, port = map(str, self._address[:2])
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: it was stopped before
            self._loop.call_soon_threadsafe(self._stopping.set)
        if self._thread.ident is not None:
            self._thread.join(_PATIENCE)
        else:
            self._socket.close()
            self._loop.close()

    def _main(self) -> None:
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            self._loop.close()

    async def _serve(self) -> None:
        server = await asyncio.start_server(self._connected, sock=self._socket, limit=_MAX_HEAD, backlog=_BACKLOG)
        await self._stopping.wait()
        server.close()
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)
        await asyncio.sleep(0)  # the connections close in the loop's next turn

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = cast("asyncio.Task[None]", asyncio.current_task())
        self._open[task] = None
        if len(self._open) > _MAX_CONNECTIONS:
            oldest = next(iter(self._open))
            del self._open[oldest]
            oldest.cancel()
        try:
            await asyncio.wait_for(self._exchange(reader, writer), _PATIENCE)
        except (OSError, EOFError, asyncio.LimitOverrunError, asyncio.TimeoutError, asyncio.CancelledError):
            pass  # he hung up, or took too long, or asked for too much, or we stop
        finally:
            self._open.pop(task, None)
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await reader.readuntil(b"\r\n\r\n")
        method, target, *_ = *request.split(maxsplit=2), b"", b""
        status, page = self._answer_to(method, target)
        body = json.dumps(page).encode()
        head = (
            f"HTTP/1.0 {status.value} {status.phrase}\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        )
        writer.write(head.encode() + (b"" if method == b"HEAD" else body))
        await writer.drain()

    def _answer_to(self, method: bytes, target: bytes) -> tuple[HTTPStatus, dict[str, Any]]:
        if method not in {b"GET", b"HEAD"}:
            return HTTPStatus.METHOD_NOT_ALLOWED, {"error": "there are GET and HEAD"}
        health = self._look()
        known = {b"/healthz": health.is_alive, b"/readyz": health.is_alive and health.is_ready}
        is_well = known.get(target.partition(b"?")[0])
        if is_well is None:
            return HTTPStatus.NOT_FOUND, {"error": "there are /healthz and /readyz"}
        status = HTTPStatus.OK if is_well else HTTPStatus.SERVICE_UNAVAILABLE
        return status, {"alive": health.is_alive, "ready": health.is_ready, **health.figures}


def _listening(host: str, port: int) -> socket.socket:
    if port > _LAST_PORT:
        raise OverflowError(f"there are ports up to {_LAST_PORT}")
    return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
