"""`ragspan worker` as a process, and what the broker knows of its work."""

from __future__ import annotations

import asyncio
import os

from fleet_processes import FleetWorker

from ragspan_nats.connection import ensure_streams
from ragspan_nats.message import message_of
from ragspan_nats.settings import Stream

HEALTH = ("--health", "127.0.0.1:0")
STREAM = Stream()
_AT_ONCE = 200  # publishes that wait for their acknowledgements


def start_worker(broker, log, *arguments, **environment):
    """A worker of the broker's records, which says what it does in the file `log`."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("OPENAI_", "PHOENIX_"))}
    return FleetWorker(
        "worker",
        arguments=["--broker", broker.url, *HEALTH, *arguments],
        environment={**inherited, "NO_PROXY": "*", **environment},
        log=log,
    )


def publish(broker, *records):
    """Put records into the stream, which is made where it is missing."""

    async def put(client):
        jetstream, at_once = client.jetstream(), asyncio.Semaphore(_AT_ONCE)
        await ensure_streams(jetstream, STREAM)

        async def put_one(record):
            message = message_of(record)
            async with at_once:
                await jetstream.publish(STREAM.records, message.payload, headers=dict(message.headers), timeout=30)

        await asyncio.gather(*map(put_one, records))

    broker.ask(put)


def is_empty(broker, stream=STREAM.name):
    state = broker.stream(stream)
    return state is not None and state.messages == 0


def in_work(broker):
    async def ask(client):
        return (await client.jetstream().consumer_info(STREAM.name, STREAM.consumer)).num_ack_pending

    return broker.ask(ask)
