"""Dead letters: messages that no worker could score, with headers that say why; and the commands that list and return them.

Whoever may publish may have given a message any payload and any headers, so what is read here is checked, and of the headers
only what says how to read the message is published again.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from ragspan.exceptions import ConfigurationError
from ragspan.throttled_log import ThrottledLog
from ragspan_nats.message import EARLIER_DELIVERIES, MESSAGE_ID, Message, copy_of, header_text, headers_in
from ragspan_nats.settings import BrokerAccess, Stream

if TYPE_CHECKING:
    from nats.aio.client import Client

    from ragspan_nats.consumer import Delivery, Verdict

REASON = "Ragspan-Reason"
DETAIL = "Ragspan-Detail"
DELIVERIES = "Ragspan-Deliveries"
RECORD = "Ragspan-Record"
DEAD_LETTERED_AT = "Ragspan-Dead-Lettered-At"
LEFT_OUT = "Ragspan-Left-Out"
"""Bytes of a payload that had no room beside these headers."""
_TIMEOUT = 10.0  # seconds
_CONNECT = 5.0  # seconds
_LAST_MOMENT = 253_402_300_799  # Unix seconds of the end of the year 9999
_MAX_SHOWN = 300  # characters of a text

Broker: TypeAlias = Annotated[
    str | None, typer.Option(metavar="URL", help="nats://host:4222 or tls://…; RAGSPAN_SINK by default.")
]
StreamName: TypeAlias = Annotated[
    str | None, typer.Option(metavar="NAME", help="RAGSPAN_NATS_STREAM by default, else ragspan.")
]
Reason: TypeAlias = Annotated[str | None, typer.Option(metavar="REASON", help="Only those that were put aside for it.")]

app = typer.Typer(
    add_completion=False, no_args_is_help=True, help="Records that the workers could not score: why, and once more."
)


@dataclass(frozen=True, kw_only=True, slots=True)
class DeadLetter:
    """A message that was put aside."""

    sequence: int
    """Its place among the dead letters."""
    payload: bytes
    headers: Mapping[str, str]

    @property
    def reason(self) -> str:
        return self.headers.get(REASON, "")

    @property
    def deliveries(self) -> int:
        """How often it had been delivered."""
        return int(_number(self.headers.get(DELIVERIES)))

    @property
    def is_whole(self) -> bool:
        """The payload is there; it had no room beside the headers of a dead letter otherwise."""
        return LEFT_OUT not in self.headers

    def facts(self) -> dict[str, object]:
        """What is shown of it."""
        dead_lettered = datetime.fromtimestamp(_number(self.headers.get(DEAD_LETTERED_AT)), tz=timezone.utc)
        detail = self.headers.get(DETAIL, "")
        return {
            "number": self.sequence,
            "dead_lettered": dead_lettered.isoformat(timespec="seconds"),
            "reason": self.reason,
            "deliveries": self.deliveries,
            "record": self.headers.get(RECORD, ""),
            "detail": detail if self.is_whole else f"{detail} (the message itself had no room)".strip(),
        }


async def publish_dead_letter(client: Client, stream: Stream, delivery: Delivery, verdict: Verdict) -> None:
    """Put a message among the dead letters.

    Done twice, because a worker died in between, it is there once: for as long as the broker looks for duplicates.

    Raises:
        nats.errors.Error: the broker did not take it.
    """
    own = {
        RECORD: header_text(delivery.headers.get(MESSAGE_ID, "")),
        REASON: verdict.reason or "",
        DETAIL: header_text(verdict.detail),
        DELIVERIES: str(delivery.count),
        DEAD_LETTERED_AT: f"{time.time():.3f}",
    }
    letter = copy_of(delivery.payload, delivery.headers, place=f"{stream.name}-{delivery.sequence}", own=own)
    if letter.size > client.max_payload:
        letter = Message(payload=b"", headers={**letter.headers, LEFT_OUT: str(len(letter.payload))})
    await client.jetstream(timeout=_TIMEOUT).publish(stream.dead_letters, letter.payload, headers=dict(letter.headers))


async def dead_letters(client: Client, stream: Stream) -> AsyncIterator[DeadLetter]:
    """All that are there at this moment, the oldest first.

    Raises:
        nats.js.errors.NotFoundError: there is no such stream.
        nats.errors.Error: the broker does not let us, or cannot.
    """
    from nats.js.errors import NotFoundError

    jetstream = client.jetstream()
    state = (await jetstream.stream_info(stream.dead_stream)).state
    sequence = state.first_seq
    while sequence <= state.last_seq:
        try:
            message = await jetstream.get_msg(stream.dead_stream, sequence, stream.dead_letters, next=True)
        except NotFoundError:  # the last ones went back, or were too old, in the meantime
            return
        found = message.seq or sequence
        if found > state.last_seq:  # it became one since
            return
        yield DeadLetter(sequence=found, payload=message.data or b"", headers=headers_in(message))
        sequence = found + 1


async def return_dead_letter(client: Client, stream: Stream, letter: DeadLetter) -> bool:
    """Return a dead letter to the stream of records, and take it out of the dead letters.

    It goes by another message id than before, which the stream would take for a duplicate. A crash in between returns it
    twice at most; by its own id the stream knows it again.

    Returns:
        False, and it is a dead letter still, if it is not whole, or larger than the broker allows.

    Raises:
        nats.errors.Error: the broker did not take it; it is a dead letter still.
    """
    from nats.js.errors import APIError, NotFoundError

    jetstream = client.jetstream(timeout=_TIMEOUT)
    own = {EARLIER_DELIVERIES: str(letter.deliveries)}
    message = copy_of(letter.payload, letter.headers, place=f"{stream.dead_stream}-{letter.sequence}", own=own)
    # The client would send more, since it does not count the headers, and the broker ends the connection then.
    if not letter.is_whole or message.size > client.max_payload:
        return False
    await jetstream.publish(stream.records, message.payload, headers=dict(message.headers))
    try:
        await jetstream.delete_msg(stream.dead_stream, letter.sequence)
    except APIError as error:
        try:
            await jetstream.get_msg(stream.dead_stream, letter.sequence)
        except NotFoundError:
            return True  # somebody else has returned it at the same time, to the same effect
        raise error from None
    return True


@app.command("list")
def list_letters(
    broker: Broker = None,
    stream: StreamName = None,
    reason: Reason = None,
    as_json: Annotated[bool, typer.Option("--json", help="A line of JSON each, for other programs.")] = False,  # noqa: FBT002 - an option
    limit: Annotated[int, typer.Option(metavar="N", min=1, help="The oldest so many.")] = 100,
) -> None:
    """Show the dead letters, the oldest first. What users wrote is not shown.

    Exit codes: 0 shown, even if there are none; 1 the broker cannot be used; 2 a setting or an argument cannot be used.
    """
    _run("list", broker, stream, lambda client, names: _list(client, names, reason, limit, as_json=as_json))


@app.command()
def retry(
    sequences: Annotated[
        list[int] | None, typer.Argument(metavar="[NUMBER]...", min=1, help="As `list` shows them; see also --all.")
    ] = None,
    broker: Broker = None,
    stream: StreamName = None,
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
    _run("retry", broker, stream, lambda client, names: _retry(client, names, wanted, reason))


def _run(command: str, broker: str | None, name: str | None, do: Callable[[Client, Stream], Awaitable[None]]) -> None:
    def fail(why: str, status: int = 1) -> typer.Exit:
        typer.echo(f"ragspan dead-letters {command}: {why}", err=True)
        return typer.Exit(status)

    async def run(access: BrokerAccess, stream: Stream) -> None:
        from nats.errors import Error
        from nats.js.errors import APIError, NotFoundError

        from ragspan_nats.connection import BrokerConnection

        connection = BrokerConnection(access, name="ragspan dead-letters", log=ThrottledLog())
        try:
            await do(await asyncio.wait_for(connection.client(), _CONNECT), stream)
        except NotFoundError:
            raise fail(f"there is no stream {stream.dead_stream} at {access.place}") from None
        except APIError as error:  # such as that the stream of records is full
            raise fail(f"the broker says: {_plain(error.description or '')}") from None
        except (Error, OSError, asyncio.TimeoutError) as error:
            raise fail(f"the broker at {access.place} cannot be used: {type(error).__name__}") from None
        finally:
            await connection.close()

    try:
        access, stream = BrokerAccess.from_environment(broker), Stream.from_environment(name)
        access.options()
    except ConfigurationError as error:
        raise fail(str(error), 2) from None
    asyncio.run(run(access, stream))


async def _list(client: Client, stream: Stream, reason: str | None, limit: int, *, as_json: bool) -> None:
    shown: list[DeadLetter] = []
    reasons: Counter[str] = Counter()
    async for letter in dead_letters(client, stream):
        if reason is None or letter.reason == reason:
            reasons[_plain(letter.reason)] += 1
            if len(shown) < limit:
                shown.append(letter)
    if as_json:
        for letter in shown:
            typer.echo(json.dumps(letter.facts()))
        return
    for letter in shown:
        number, *facts = letter.facts().values()
        typer.echo("  ".join([f"{number:>8}", *(_plain(str(fact)) for fact in facts)]).rstrip())
    by_reason = ", ".join(f"{name} {number}" for name, number in reasons.most_common())
    total = f"{sum(reasons.values())} dead letters in {stream.dead_stream}"
    typer.echo(f"{total}: {by_reason}" if by_reason else total)


async def _retry(client: Client, stream: Stream, wanted: Sequence[int], reason: str | None) -> None:
    returned = 0
    left = set(wanted)
    try:
        async for letter in dead_letters(client, stream):
            if (wanted and letter.sequence not in wanted) or reason not in {None, letter.reason}:
                continue
            if await return_dead_letter(client, stream, letter):
                returned += 1
                left.discard(letter.sequence)
            else:
                left.add(letter.sequence)
    finally:
        typer.echo(f"{returned} records returned to the stream {stream.name}")
    if left:
        typer.echo(
            "ragspan dead-letters retry: these numbers could not be returned, because there is no such dead letter, or not "
            f"the whole message: {', '.join(map(str, sorted(left)))}",
            err=True,
        )
        raise typer.Exit(1)


def _plain(text: str) -> str:
    """One line without signs that a terminal would follow; whoever may publish to the stream chose them."""
    return "".join(sign if sign.isprintable() else "?" for sign in text[:_MAX_SHOWN])


def _number(text: str | None) -> float:
    """From 0 to the largest that can be a moment."""
    try:
        number = float(text or 0)
    except ValueError:
        return 0.0
    return min(max(number, 0.0), float(_LAST_MOMENT)) if number == number else 0.0  # noqa: PLR0124 - not a number
