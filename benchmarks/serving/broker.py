"""A NATS server with JetStream, for the mode `nats`: it takes what the application publishes.

    python -m serving.broker

The port that it says it serves at is that of the server's own monitoring: `GET /varz` names the port for clients, and
`GET /jsz?streams=1` tells what the streams hold. What they hold goes with the process.
"""

from __future__ import annotations

import http.client
import json
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from serving.processes import HOST, PATIENCE, Program, end_on_sigterm, say

STREAM = "ragspan"


def server_program() -> str | None:
    """The path of `nats-server`; None where it is not installed."""
    return shutil.which("nats-server") or shutil.which("nats-server", path="/usr/sbin")


def client_url(broker: Program) -> str:
    """Where clients find the broker."""
    return f"nats://{HOST}:{broker.get('/varz')['port']}"


def messages_in(broker: Program) -> int:
    """How many messages the stream holds."""
    accounts: list[Any] = broker.get("/jsz?streams=1").get("account_details") or []
    streams = [stream for account in accounts for stream in account.get("stream_detail") or []]
    return sum(stream["state"]["messages"] for stream in streams if stream["name"] == STREAM)


def serve(folder: Path) -> None:
    program = server_program()
    if program is None:
        sys.exit("nats-server is not installed (Debian and Ubuntu: apt install nats-server)")
    client_port, monitoring_port = unused_ports(2)
    options = ["-js", "-sd", str(folder), "-a", HOST, "-p", str(client_port), "-m", str(monitoring_port)]
    server = subprocess.Popen([program, *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for(server, monitoring_port)
        say(port=monitoring_port)
        server.wait()
    finally:
        server.terminate()
        server.wait(PATIENCE)


def wait_for(server: subprocess.Popen[bytes], port: int) -> None:
    """Wait until the server says that it is well."""
    limit = time.monotonic() + PATIENCE
    while not is_well(port):
        if server.poll() is not None or time.monotonic() > limit:
            sys.exit("nats-server does not start")
        time.sleep(0.02)


def is_well(port: int) -> bool:
    with closing(http.client.HTTPConnection(HOST, port, timeout=PATIENCE)) as connection:
        try:
            connection.request("GET", "/healthz")
            return bool(json.loads(connection.getresponse().read()).get("status") == "ok")
        except OSError:
            return False


def unused_ports(count: int) -> list[int]:
    listening = [socket.create_server((HOST, 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in listening]
    for one in listening:
        one.close()
    return ports


def main() -> None:
    end_on_sigterm()
    with tempfile.TemporaryDirectory(prefix="ragspan-broker-") as folder:
        serve(Path(folder))


if __name__ == "__main__":
    main()
