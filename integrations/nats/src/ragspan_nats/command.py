"""The commands `ragspan worker` and `ragspan dead-letters`, and the worker's health page for Kubernetes' probes and for people.

`/healthz` is 200 as long as the worker's loop turns, also while the broker is away: a restart would not bring the broker back. A loop
that hangs does not answer at all. `/readyz` is 200 while records can come. Both return the counts as JSON. A connection that is
silent for five seconds ends.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer
from opentelemetry.metrics import set_meter_provider

from ragspan.command_line import Judge, Metrics, call_at_signals, listener_at, shown_address
from ragspan.config import Settings, settings_with
from ragspan.counted import counted
from ragspan.exceptions import ConfigurationError
from ragspan.throttled_log import ThrottledLog
from ragspan_nats.message import dead_letters, deliver_again
from ragspan_nats.settings import BrokerAccess, Stream, WorkerOptions

if TYPE_CHECKING:  # not loaded before they are needed
    import socket

    from nats.aio.client import Client

    from ragspan_nats.worker import Worker, WorkerStats

_CONNECT = 5.0  # seconds
_MAX_SHOWN = 300  # characters of a text
_SILENCE = 5.0  # seconds that a connection may be silent
_DEFAULTS = WorkerOptions()

Broker: TypeAlias = Annotated[
    str | None,
    typer.Option(metavar="URL", help="nats://host:4222, or tls://…; several with commas. RAGSPAN_SINK by default."),
]
StreamName: TypeAlias = Annotated[
    str | None, typer.Option(metavar="NAME", help="RAGSPAN_NATS_STREAM by default, else ragspan.")
]
Reason: TypeAlias = Annotated[str | None, typer.Option(metavar="REASON", help="Only those with this reason.")]

app = typer.Typer(add_completion=False)
dead_letters_app = typer.Typer(
    add_completion=False, no_args_is_help=True, help="Records that the workers could not score: list and retry them."
)


@app.command()
def worker(
    broker: Broker = None,
    stream: StreamName = None,
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
    _CERTIFICATE_FILE and _KEY_FILE. Any number of workers share a stream. If the stream is missing, the worker makes it, with
    the limits of RAGSPAN_NATS_MAX_RECORDS, _MAX_BYTES and _REPLICAS.

    SIGTERM and Ctrl-C: the worker takes no new records, and finishes those in flight within --drain-timeout or gives them back.
    A second signal gives all back.

    Exit codes: 0 stopped as asked; 2 a setting or an argument is wrong.
    """
    from ragspan_nats.worker import Worker

    settings = settings_with(metrics=metrics, judge=judge, concurrency=concurrency)
    options = WorkerOptions(
        concurrency=settings.concurrency,
        ack_wait=ack_wait,
        max_deliveries=max_deliveries,
        max_ack_pending=max_ack_pending,
        drain_timeout=drain_timeout,
        export_retry_timeout=export_retry_timeout,
    )
    access, records = _broker_and_stream(broker, stream)
    made = Worker(access, settings, stream=records, options=options)
    listener = listener_at(health) if health is not None else None
    set_meter_provider(made.meter_provider)
    where = f"records of stream {records.name} at {access.place}"
    typer.echo(f"ragspan worker: {where}, {_about(settings, listener)}", err=True)
    try:
        asyncio.run(_until_stopped(made, listener))
    finally:
        typer.echo(f"ragspan worker: {_summary(made.stats())}", err=True)


def _about(settings: Settings, listener: socket.socket | None) -> str:
    """What it does, and where its health is shown."""
    where = f"; health at http://{shown_address(*listener.getsockname()[:2])}/healthz" if listener is not None else ""
    return f"{settings.concurrency} at a time, {', '.join(settings.metrics)} by {settings.judge}{where}"


def _summary(stats: WorkerStats) -> str:
    nacked, dead_lettered = sum(stats.nacked.values()), sum(stats.dead_lettered.values())
    return f"{counted(stats.acknowledged, 'record')} scored, {nacked} given back, {dead_lettered} put aside"


def _broker_and_stream(broker: str | None, stream: str | None) -> tuple[BrokerAccess, Stream]:
    access = BrokerAccess.from_environment(broker)
    access.options()  # reads the certificates
    return access, Stream.from_environment(stream)


async def _until_stopped(worker: Worker, listener: socket.socket | None) -> None:
    call_at_signals(worker.stop)
    page = await serve_health(listener, worker.stats) if listener is not None else None
    try:
        await worker.run()
    finally:
        if page is not None:
            page.close()


async def serve_health(listener: socket.socket, look: Callable[[], WorkerStats]) -> asyncio.Server:
    """Serve a worker's health by HTTP, in this event loop; `look` returns the worker's state."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), _SILENCE)
            writer.write(_health(look(), *head.split(b" ", 2)))
        except (asyncio.TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError):
            pass  # it hung up, said nothing, or too much
        finally:
            writer.close()

    return await asyncio.start_server(answer, sock=listener)


def _health(stats: WorkerStats, method: bytes, path: bytes = b"", *_: bytes) -> bytes:
    is_well = {b"/healthz": True, b"/readyz": stats.ready}.get(path.partition(b"?")[0])
    status = HTTPStatus.OK if is_well else HTTPStatus.SERVICE_UNAVAILABLE
    page = asdict(stats)
    if is_well is None:
        status, page = HTTPStatus.NOT_FOUND, {"error": "there are /healthz and /readyz"}
    body = json.dumps(page).encode()
    head = (
        f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + (b"" if method == b"HEAD" else body)


@dead_letters_app.command("list")
def list_letters(
    broker: Broker = None,
    stream: StreamName = None,
    reason: Reason = None,
    as_json: Annotated[bool, typer.Option("--json", help="A line of JSON each, for other programs.")] = False,  # noqa: FBT002 - an option
) -> None:
    """Show the dead letters, the oldest first. What users wrote is not shown.

    Exit codes: 0 shown, even if there are none; 1 the broker cannot be used; 2 a setting or an argument is wrong.
    """
    asyncio.run(_list(broker, stream, reason, as_json=as_json))


@dead_letters_app.command()
def retry(
    numbers: Annotated[
        list[int] | None, typer.Argument(metavar="[NUMBER]...", min=1, help="As `list` shows them; see also --all.")
    ] = None,
    broker: Broker = None,
    stream: StreamName = None,
    reason: Reason = None,
    every: Annotated[bool, typer.Option("--all", help="All of them, or all with the reason.")] = False,  # noqa: FBT002 - an option
) -> None:
    """Return dead letters to the stream of records, where they are delivered anew.

    Exit codes: 0 all of them were returned; 1 some were not, or the broker cannot be used; 2 an argument is wrong.
    """
    if bool(numbers) == every:
        typer.echo("ragspan dead-letters retry: give the numbers that `list` shows, or --all", err=True)
        raise typer.Exit(2)
    asyncio.run(_retry(broker, stream, reason, set(numbers or ())))


@asynccontextmanager
async def _dead_letters(command: str, broker: str | None, name: str | None) -> AsyncIterator[tuple[Client, Stream]]:
    """The broker's client, and the stream with the dead letters. Errors in the block become messages and exit codes."""
    from nats.errors import Error
    from nats.js.errors import APIError, NotFoundError

    from ragspan_nats.connection import BrokerConnection

    def fail(why: str, status: int = 1) -> typer.Exit:
        typer.echo(f"ragspan dead-letters {command}: {why}", err=True)
        return typer.Exit(status)

    try:
        access, stream = _broker_and_stream(broker, name)
    except ConfigurationError as error:
        raise fail(str(error), 2) from None
    connection = BrokerConnection(access, name="ragspan dead-letters", log=ThrottledLog())
    try:
        yield await asyncio.wait_for(connection.client(), _CONNECT), stream
    except NotFoundError:
        raise fail(f"there is no stream {stream.dead_stream} at {access.place}") from None
    except APIError as error:  # for example, the stream of records is full
        raise fail(f"the broker says: {_plain(error.description or '')}") from None
    except BrokenPipeError:  # whoever reads our output has left: the command ends without a word
        raise
    except (Error, OSError, asyncio.TimeoutError) as error:
        why = "it does not answer" if isinstance(error, asyncio.TimeoutError) else type(error).__name__
        raise fail(f"the broker at {access.place} cannot be used: {why}") from None
    finally:
        await connection.close()


async def _list(broker: str | None, name: str | None, reason: str | None, *, as_json: bool) -> None:
    reasons: Counter[str] = Counter()
    async with _dead_letters("list", broker, name) as (client, stream):
        async for letter in dead_letters(client, stream):
            if reason not in {None, letter.reason}:
                continue
            reasons[_plain(letter.reason)] += 1
            facts = letter.facts()
            line = json.dumps(facts) if as_json else "  ".join(_plain(str(fact)) for fact in facts.values()).rstrip()
            typer.echo(line)
    if not as_json:
        by_reason = ", ".join(f"{name} {number}" for name, number in reasons.most_common())
        total = f"{reasons.total()} dead letters in {stream.dead_stream}"
        typer.echo(f"{total}: {by_reason}" if by_reason else total)


async def _retry(broker: str | None, name: str | None, reason: str | None, wanted: set[int]) -> None:
    returned = 0
    left = set(wanted)
    async with _dead_letters("retry", broker, name) as (client, stream):
        try:
            async for letter in dead_letters(client, stream):
                if (wanted and letter.sequence not in wanted) or reason not in {None, letter.reason}:
                    continue
                left.add(letter.sequence)
                if await deliver_again(client, letter, stream.records):
                    returned += 1
                    left.discard(letter.sequence)
        finally:
            typer.echo(f"{counted(returned, 'record')} returned to the stream {stream.name}")
    if left:
        typer.echo(
            "ragspan dead-letters retry: these numbers could not be returned, because there is no such dead letter, or not "
            f"the whole message: {', '.join(map(str, sorted(left)))}",
            err=True,
        )
        raise typer.Exit(1)


def _plain(text: str) -> str:
    """One line without characters that a terminal would interpret: anybody who may publish to the stream chose them."""
    return "".join(sign if sign.isprintable() else "?" for sign in text[:_MAX_SHOWN])
