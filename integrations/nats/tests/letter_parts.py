"""Dead letters for tests: how they come to be, and what commands and the broker say of them."""

from __future__ import annotations

import json

from typer.testing import CliRunner
from worker_parts import a_delivery, a_record

from ragspan.cli import app
from ragspan_nats.connection import ensure_streams
from ragspan_nats.consumer import Verdict, publish_dead_letter
from ragspan_nats.message import dead_letters, message_of
from ragspan_nats.settings import Stream

STREAM = Stream()


def make_streams(broker, **limits):
    broker.ask(lambda client: ensure_streams(client.jetstream(), Stream(**limits)))


def aside(broker, *, reason="invalid_record", detail="it is none", **message):
    """Put a message aside, as a worker does."""
    verdict = Verdict(ending="dead_lettered", reason=reason, detail=detail)
    delivery = a_delivery(**message)
    broker.ask(lambda client: publish_dead_letter(client, STREAM, delivery, verdict))
    return delivery


def aside_record(broker, record=None, **about):
    """Put a record aside; the message that it came by."""
    message = message_of(record or a_record(), compress_above=10**6)
    aside(broker, payload=message.payload, headers=dict(message.headers), **about)
    return message


def found(broker):
    async def all_of_them(client):
        return [letter async for letter in dead_letters(client, STREAM)]

    return broker.ask(all_of_them)


def command(broker, *arguments, **environment):
    return CliRunner().invoke(app, ["dead-letters", *map(str, arguments), "--broker", broker.url], env=environment)


def listed(broker, *arguments):
    """What `list --json` prints."""
    done = command(broker, "list", "--json", *arguments)
    assert done.exit_code == 0, done.output
    return [json.loads(line) for line in done.output.splitlines()]


def returned(broker):
    return broker.messages(STREAM.name)
