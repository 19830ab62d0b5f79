"""The commands `ragspan dead-letters list` and `ragspan dead-letters retry`."""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Annotated, Any, TypeAlias

import typer

from ragspan.exceptions import ConfigurationError
from ragspan.throttled_log import ThrottledLog
from ragspan_nats.access import BrokerAccess, broker_address
from ragspan_nats.connection import BrokerConnection
from ragspan_nats.dead_letters.letters import DeadLetter, dead_letter, dead_letters, return_dead_letter
from ragspan_nats.streams import StreamNames, stream_name

app = typer.Typer(
    add_completion=False, no_args_is_help=True, help="Records that the workers could not score: why, and once more."
)

_CONNECT = 5.0  # seconds
_WIDTH = 160  # columns, where it goes to a file or a pipe
_MAX_SHOWN = 300  # characters of a text

Broker: TypeAlias = Annotated[
    str | None, typer.Option(metavar="URL", help="nats://host:4222 or tls://…; RAGSPAN_SINK by default.")
]
Stream: TypeAlias = Annotated[
    str | None, typer.Option(metavar="NAME", help="RAGSPAN_NATS_STREAM by default, else ragspan.")
]
Reason: TypeAlias = Annotated[str | None, typer.Option(metavar="REASON", help="Only those that were put aside for it.")]


@app.command("list")
def list_letters(
    broker: Broker = None,
    stream: Stream = None,
    reason: Reason = None,
    as_json: Annotated[bool, typer.Option("--json", help="A line of JSON each, for other programs.")] = False,  # noqa: FBT002 - an option
    limit: Annotated[int, typer.Option(metavar="N", min=1, help="The oldest so many.")] = 100,
) -> None:
    """Show the dead letters, the oldest first. What users wrote is not shown.

    Exit codes: 0 shown, even if there are none; 1 the broker cannot be used; 2 a setting or an argument cannot be used.
    """
    asyncio.run(_with_letters("list", broker, stream, lambda at: _list(at, reason, limit, as_json=as_json)))


@app.command()
def retry(
    sequences: Annotated[
        list[int] | None, typer.Argument(metavar="[NUMBER]...", min=1, help="As `list` shows them; see also --all.")
    ] = None,
    broker: Broker = None,
    stream: Stream = None,
    reason: Reason = None,
    every: Annotated[bool, typer.Option("--all", help="All of them, or all that have the reason.")] = False,  # noqa: FBT002 - an option
) -> None:
    """Return dead letters to the stream of records, where they are delivered anew.

    Exit codes: 0 all of them went back; 1 some did not, or the broker cannot be used; 2 an argument cannot be used.
    """
    if bool(sequences) == every:
        typer.echo("ragspan dead-letters retry: name the numbers that `list` shows, or give --all", err=True)
        raise typer.Exit(2)
    wanted = sorted(set(sequences or ()))
    asyncio.run(_with_letters("retry", broker, stream, lambda at: _retry(at, wanted, reason)))


@dataclass(frozen=True, kw_only=True, slots=True)
class _At:
    """Where the letters are."""

    jetstream: Any
    names: StreamNames


async def _with_letters(
    command: str, broker: str | None, stream: str | None, do: Callable[[_At], Awaitable[None]]
) -> None:
    from nats.errors import Error
    from nats.js.errors import APIError, NotFoundError

    try:
        access = BrokerAccess.from_environment(broker_address(broker))
        names = StreamNames(stream=stream_name(stream))
        access.options()
    except ConfigurationError as error:
        typer.echo(f"ragspan dead-letters {command}: {error}", err=True)
        raise typer.Exit(2) from None
    connection = BrokerConnection(access, name="ragspan dead-letters", log=ThrottledLog())
    try:
        jetstream = await asyncio.wait_for(connection.jetstream(), _CONNECT)
        await do(_At(jetstream=jetstream, names=names))
    except NotFoundError:
        typer.echo(
            f"ragspan dead-letters {command}: there is no stream {names.dead_stream} at {access.place}", err=True
        )
        raise typer.Exit(1) from None
    except APIError as error:  # such as that the stream of records is full
        typer.echo(f"ragspan dead-letters {command}: the broker says: {_plain(error.description or '')}", err=True)
        raise typer.Exit(1) from None
    except (Error, OSError, asyncio.TimeoutError) as error:
        kind = type(error).__name__
        typer.echo(f"ragspan dead-letters {command}: the broker at {access.place} cannot be used: {kind}", err=True)
        raise typer.Exit(1) from None
    finally:
        await connection.close()


async def _list(at: _At, reason: str | None, limit: int, *, as_json: bool) -> None:
    shown: list[DeadLetter] = []
    reasons: Counter[str] = Counter()
    async for letter in dead_letters(at.jetstream, at.names):
        if reason is not None and letter.reason != reason:
            continue
        reasons[_plain(letter.reason)] += 1
        if len(shown) < limit:
            shown.append(letter)
        elif as_json:
            break
    if as_json:
        for letter in shown:
            typer.echo(json.dumps(_facts(letter)))
        return
    if shown:
        _print_table(shown)
    total = sum(reasons.values())
    by_reason = ", ".join(f"{name} {number}" for name, number in reasons.most_common())
    typer.echo(f"{total} dead letters in {at.names.dead_stream}" + (f": {by_reason}" if by_reason else ""))


def _print_table(letters: Sequence[DeadLetter]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table()
    for heading in ("number", "put aside", "reason", "deliveries", "record"):
        table.add_column(heading, no_wrap=True)
    table.add_column("detail")
    for letter in letters:
        table.add_row(*(Text(_plain(str(fact))) for fact in _facts(letter).values()))
    Console(highlight=False, width=None if sys.stdout.isatty() else _WIDTH).print(table)


def _facts(letter: DeadLetter) -> dict[str, object]:
    dead_lettered = datetime.fromtimestamp(letter.dead_lettered_at, tz=timezone.utc)
    return {
        "number": letter.sequence,
        "dead_lettered": dead_lettered.isoformat(timespec="seconds"),
        "reason": letter.reason,
        "deliveries": letter.deliveries,
        "record": letter.record_id,
        "detail": letter.detail if letter.is_whole else f"{letter.detail} (the message itself had no room)".strip(),
    }


def _plain(text: str) -> str:
    """One line without signs that a terminal would follow; whoever may publish to the stream chose them."""
    return "".join(sign if sign.isprintable() else "?" for sign in text[:_MAX_SHOWN])


async def _retry(at: _At, wanted: Sequence[int], reason: str | None) -> None:
    returned = 0
    left: list[int] = []
    try:
        async for number, letter in _chosen(at, wanted, reason):
            if letter is not None and await return_dead_letter(at.jetstream, at.names, letter):
                returned += 1
            else:
                left.append(number)
    finally:
        typer.echo(f"{returned} records returned to the stream {at.names.stream}")
    if left:
        typer.echo(
            "ragspan dead-letters retry: these numbers could not be returned, because there is no such dead letter, or not "
            f"the whole message: {', '.join(map(str, left))}",
            err=True,
        )
        raise typer.Exit(1)


async def _chosen(at: _At, wanted: Sequence[int], reason: str | None) -> AsyncIterator[tuple[int, DeadLetter | None]]:
    """The wanted dead letters by their numbers, with None for one that is not there; without numbers all of them."""
    if not wanted:
        async for letter in dead_letters(at.jetstream, at.names):
            if reason is None or letter.reason == reason:
                yield letter.sequence, letter
    for number in wanted:
        found = await dead_letter(at.jetstream, at.names, number)
        yield number, found if found is None or reason in {None, found.reason} else None
