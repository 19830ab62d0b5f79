"""A real broker for tests: a `nats-server` with JetStream, as a process of its own on this machine."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import random
import shutil
import signal
import socket
import subprocess
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import NamedTuple

import pytest
from nats.aio.client import Client
from nats.js.errors import NotFoundError
from waiting import PATIENCE, until

from ragspan_nats.settings import BrokerAccess

HOST = "127.0.0.1"
_given_out = set()


class StoredMessage(NamedTuple):
    """A message as the stream keeps it."""

    sequence: int
    subject: str
    payload: bytes
    headers: dict


class BrokerView:
    """What the tests look into a broker with, whoever else does something there.

    Attributes:
        url: where it is.
        view: how it is signed in to: `user:password`, or keywords of `BrokerAccess`; for brokers that ask.
    """

    url: str
    view: dict | str

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.close()

    @property
    def way_in(self):
        """The address that the look into it takes."""
        return self.url

    def stream(self, name):
        """The stream's state; None if there is none."""
        return self.ask(lambda client: _state(client, name))

    def messages(self, name):
        """The stream's messages in their order, without taking any of them out."""
        return self.ask(lambda client: _messages(client, name))

    def make_stream(self, **config):
        """Make a stream as `nats.js.api.StreamConfig` describes one."""
        self.ask(lambda client: client.jetstream().add_stream(**config))

    def drop_stream(self, name):
        self.ask(lambda client: client.jetstream().delete_stream(name))

    def drop_all_streams(self):
        async def drop(client):
            for stream in await client.jetstream().streams_info():
                await client.jetstream().delete_stream(stream.config.name)

        self.ask(drop)

    def purge(self, name):
        self.ask(lambda client: client.jetstream().purge_stream(name))

    def publish(self, subject, payload, headers=None):
        """Put any message into the stream that takes this subject."""
        self.ask(lambda client: client.jetstream().publish(subject, payload, headers=headers))

    def ask(self, question):
        """What `await question(client)` returns, with a client of its own: in any test, asynchronous ones included."""

        async def ask():
            client = Client()
            url = self.way_in
            given = (
                {"url": url.replace("//", f"//{self.view}@")}
                if isinstance(self.view, str)
                else {"url": url, **self.view}
            )
            options = BrokerAccess(**given).options()
            try:
                await client.connect(**options, allow_reconnect=False, error_cb=_ignored)
                return await question(client)
            finally:
                await client.close()  # also where it was refused: nats-py leaves its connection open then

        with ThreadPoolExecutor(1) as thread:
            return thread.submit(lambda: asyncio.run(ask())).result()


class Broker(BrokerView):
    """A `nats-server -js` on loopback, which keeps its port and its store over restarts.

    Args:
        folder: where it keeps its configuration, its store and its log.
        config: further lines of its configuration file: users, TLS, `max_payload`.
        jetstream: further lines of the section about JetStream, such as `max_file_store: 1MB`.
        has_jetstream: False makes it a plain NATS server.
        view: how the tests' own look into it signs in: `user:password`, or keywords of `BrokerAccess`; for brokers that ask.
    """

    def __init__(self, folder, *, config="", jetstream="", has_jetstream=True, view=None):
        self.folder = folder
        self.config = config
        self.jetstream = jetstream
        self.has_jetstream = has_jetstream
        self.view = view if isinstance(view, str) else dict(view or {})
        self.port = unused_port()
        self._monitoring_port = unused_port()
        self._process = None

    @property
    def url(self):
        return f"nats://{HOST}:{self.port}"

    @property
    def is_running(self):
        return self._process is not None and self._process.poll() is None

    @property
    def _file(self):
        return self.folder / "broker.conf"

    @property
    def log(self):
        return (self.folder / "broker.log").read_text(encoding="utf-8", errors="replace")

    def start(self):
        """Start it and wait until it answers."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._write_configuration()
        with (self.folder / "broker.log").open("ab") as log:
            self._process = subprocess.Popen([server_program(), "-c", self._file], stdout=log, stderr=log)
        until(self._is_ready, what="the broker to answer")

    def stop(self):
        """Ask it to end, as a service manager does, and wait for that."""
        self._end(signal.SIGTERM)

    def kill(self):
        """End it without a chance to clean up."""
        self._end(signal.SIGKILL)

    def close(self):
        self.kill()

    def restart(self):
        """Stop it if it runs, and start it with the same port and store, and the configuration as it is now."""
        self.stop()
        self.start()

    def freeze(self):
        """Let it keep its connections and say nothing, from now on: a signal alone takes effect a little later."""
        self._process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self._process.pid, os.WSTOPPED)

    @property
    def connections(self):
        """The names of the clients that are connected, as they call themselves; those without a name are none of ours."""
        with closing(http.client.HTTPConnection(HOST, self._monitoring_port, timeout=PATIENCE)) as connection:
            connection.request("GET", "/connz")
            found = json.loads(connection.getresponse().read())["connections"]
        return [one["name"] for one in found if one.get("name")]

    def _write_configuration(self):
        jetstream = f'jetstream {{\n  store_dir: "{self.folder / "store"}"\n  {self.jetstream}\n}}\n'
        self._file.write_text(
            f'listen: "{HOST}:{self.port}"\n'
            f'http: "{HOST}:{self._monitoring_port}"\n'
            f"{jetstream if self.has_jetstream else ''}"
            f"{self.config}\n",
            encoding="utf-8",
        )

    def _is_ready(self):
        if self._process.poll() is not None:
            raise RuntimeError(f"the broker ended with {self._process.returncode}:\n{self.log}")
        try:
            with socket.create_connection((HOST, self.port), timeout=1) as connection:
                return connection.recv(4).startswith(b"INFO")
        except OSError:
            return False

    def _end(self, number):
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(number)
        process.send_signal(signal.SIGCONT)  # it may be frozen
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def server_program():
    """The path of `nats-server`; a test that needs it is skipped where it is missing, but in CI that is a failure."""
    found = shutil.which("nats-server", path=f"{os.environ.get('PATH', '')}{os.pathsep}/usr/sbin")
    if found is None:
        reason = "nats-server is not installed (Debian and Ubuntu: apt install nats-server)"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return found


def unused_port():
    """One that no outgoing connection gets by chance: who knocks at a closed port of those may meet himself."""
    for _ in range(100):
        port = random.randrange(20_000, 32_000)
        if port in _given_out:
            continue
        with socket.socket() as listening:
            try:
                listening.bind((HOST, port))
            except OSError:
                continue
        _given_out.add(port)
        return port
    raise RuntimeError("there is no unused port")


async def _state(client, name):
    try:
        return (await client.jetstream().stream_info(name)).state
    except NotFoundError:
        return None


async def _messages(client, name):
    state = await _state(client, name)
    found = []
    for sequence in range(max(1, state.first_seq), state.last_seq + 1) if state else ():
        try:
            message = await client.jetstream().get_msg(name, sequence)
        except NotFoundError:  # it was acknowledged
            continue
        headers = dict(message.headers or {})
        found.append(StoredMessage(message.seq, message.subject, message.data or b"", headers))
    return found


async def _ignored(error):
    pass
