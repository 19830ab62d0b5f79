"""`ragspan worker` as a process, and what the broker knows of its work."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

from brokers import until

from ragspan_nats.connection import ensure_streams
from ragspan_nats.message import message_of
from ragspan_nats.settings import Stream

STREAM = Stream()
PATIENCE = 60.0


class Worker:
    """A process with `ragspan worker`.

    Args:
        broker: whose records it scores.
        log: a file for what it says.
        arguments: of the command.
        environment: further variables.
    """

    def __init__(self, broker, log, *arguments, **environment):
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("OPENAI_", "PHOENIX_"))}
        self._log = log
        with log.open("wb") as file:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "ragspan.cli", "worker", "--broker", broker.url, *arguments],
                env={**inherited, "NO_PROXY": "*", **environment},
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
            )

    @property
    def log(self):
        return self._log.read_text(encoding="utf-8", errors="replace")

    def until(self, condition, what):
        def checked():
            assert self._process.poll() is None, self.log
            return condition()

        return until(checked, what=f"{what}\n{self.log}", patience=PATIENCE)

    def until_it_says(self, text):
        self.until(lambda: text in self.log, what=text)

    def stop(self, number=signal.SIGTERM):
        """Ask it to end; its exit status."""
        self._process.send_signal(number)
        return self._process.wait(PATIENCE)

    def close(self):
        self._process.kill()
        self._process.wait()


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
