"""`ragspan worker` as a process, and what the broker knows of its work."""

from __future__ import annotations

import os

from fleet_processes import FleetWorker

from ragspan_nats.connection import ensure_streams
from ragspan_nats.message import message_of
from ragspan_nats.settings import Stream

STREAM = Stream()


def start_worker(broker, log, *arguments, **environment):
    """A worker of the broker's records, which says what it does in the file `log`."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("OPENAI_", "PHOENIX_"))}
    return FleetWorker(
        "worker",
        arguments=["--broker", broker.url, *arguments],
        environment={**inherited, "NO_PROXY": "*", **environment},
        log=log,
    )


def publish(broker, *records):
    async def put(client):
        await ensure_streams(client.jetstream(), STREAM)
        for record in records:
            message = message_of(record, compress_above=10**6)
            await client.jetstream().publish(STREAM.records, message.payload, headers=dict(message.headers))

    broker.ask(put)


def is_empty(broker, stream=STREAM.name):
    state = broker.stream(stream)
    return state is not None and state.messages == 0


def in_work(broker):
    async def ask(client):
        return (await client.jetstream().consumer_info(STREAM.name, STREAM.consumer)).num_ack_pending

    return broker.ask(ask)
