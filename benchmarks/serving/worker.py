"""`ragspan worker` as processes of a benchmark, and records for them."""

from __future__ import annotations

import asyncio
import http.client
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager

from ragspan import RagRecord
from ragspan_nats.connection import ensure_streams
from ragspan_nats.message import message_of
from ragspan_nats.settings import Stream
from serving.broker import unused_ports
from serving.processes import HOST, PATIENCE, Program

_AT_ONCE = 500  # publishes that wait for their acknowledgements
_NOT_INHERITED = ("OTEL_", "RAGSPAN_", "OPENAI_")


@contextmanager
def running_workers(
    number: int, broker_url: str, *options: object, environment: Mapping[str, str]
) -> Iterator[list[Program]]:
    """So many workers of one fleet, all ready; their health pages are what they serve.

    Raises:
        RuntimeError: one of them does not start.
    """
    with ExitStack() as ends:
        workers = []
        for port in unused_ports(number):
            workers.append(start_worker(port, broker_url, options, environment))
            ends.callback(workers[-1].end)
        for worker in workers:
            wait_for(worker)
        yield workers


def start_worker(port: int, broker_url: str, options: Sequence[object], environment: Mapping[str, str]) -> Program:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(_NOT_INHERITED)}
    command = [sys.executable, "-m", "ragspan.cli", "worker", "--broker", broker_url, "--health", f"{HOST}:{port}"]
    process = subprocess.Popen(
        [*command, *map(str, options)],
        env={**inherited, "NO_PROXY": HOST, **environment},
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    return Program(process=process, port=port)


def wait_for(worker: Program) -> None:
    limit = time.monotonic() + PATIENCE
    while not is_ready(worker):
        if worker.process.poll() is not None or time.monotonic() > limit:
            worker.process.kill()
            said = worker.process.stderr.read() if worker.process.stderr is not None else ""
            raise RuntimeError(f"a worker does not start: {said}")
        time.sleep(0.02)


def is_ready(worker: Program) -> bool:
    with closing(http.client.HTTPConnection(HOST, worker.port, timeout=PATIENCE)) as connection:
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == http.client.OK
        except OSError:
            return False


def publish(broker_url: str, records: Sequence[RagRecord]) -> None:
    """Publish records; returns when the stream has all of them."""
    asyncio.run(_publish(broker_url, records))


async def _publish(broker_url: str, records: Sequence[RagRecord]) -> None:
    import nats

    stream, at_once = Stream(), asyncio.Semaphore(_AT_ONCE)
    client = await nats.connect(broker_url)
    jetstream = client.jetstream()
    await ensure_streams(jetstream, stream)

    async def publish(record: RagRecord) -> None:
        message = message_of(record)
        async with at_once:
            await jetstream.publish(stream.records, message.payload, timeout=PATIENCE, headers=dict(message.headers))

    await asyncio.gather(*map(publish, records))
    await client.close()
