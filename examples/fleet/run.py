"""A fleet on one machine: a broker, two workers and an application: python examples/fleet/run.py.

It takes what `pip install ragspan-nats ragspan-langchain opentelemetry-exporter-otlp-proto-http` installs, and nats-server.
It ends when all answers of the application are scored, or with Ctrl-C. In production each of these is a service of its own.
"""

from __future__ import annotations

import http.client
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

from programs import HOST, programs_within, show
from receiver import Receiver

ANSWERS = 12  # of app.py
WORKERS = 2
PATIENCE = 120.0  # seconds for everything
RAGSPAN = (sys.executable, "-m", "ragspan.cli")  # in your shell: ragspan


def main() -> None:
    server = nats_server()
    lines: list[str] = []

    def tell(line: str) -> None:
        show("traces", line)
        lines.append(line)

    with (
        closing(Receiver(tell)) as receiver,
        tempfile.TemporaryDirectory() as store,
        programs_within(PATIENCE) as programs,
    ):
        port = unused_port()
        address = f"nats://{HOST}:{port}"
        programs.start("broker", server, "-js", "-a", HOST, "-p", str(port), "-sd", store)
        programs.wait_until(lambda: is_open(port), what="the broker")
        pages = [unused_port() for _ in range(WORKERS)]
        for number, page in enumerate(pages, start=1):
            programs.start(
                f"worker-{number}",
                *(*RAGSPAN, "worker", "--broker", address, "--health", f"{HOST}:{page}"),
                OTEL_EXPORTER_OTLP_ENDPOINT=receiver.url,
                OTEL_RESOURCE_ATTRIBUTES=f"service.instance.id=worker-{number}",
                RAGSPAN_CAPTURE_CONTENT="true",  # for the questions in the lines below
            )
        programs.wait_until(lambda: all(map(is_ready, pages)), what="the workers")
        programs.start("app", sys.executable, str(Path(__file__).with_name("app.py")), RAGSPAN_SINK=address)
        programs.wait_until(lambda: len(lines) >= ANSWERS, what="scores")
    print(f"all {len(lines)} answers are scored")


def nats_server() -> str:
    """The broker's program; installed first where that can be done.

    Raises:
        SystemExit: it is not there.
    """
    path = f"{os.environ.get('PATH', '')}{os.pathsep}/usr/sbin"  # where Debian puts it
    if shutil.which("nats-server", path=path) is None and shutil.which("apt-get") and os.geteuid() == 0:
        print("nats-server is missing; it is installed with apt-get ...", flush=True)
        quietly = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for command in ("update -qq", "install -y -qq --no-install-recommends nats-server"):
            subprocess.run(["apt-get", *command.split()], env=quietly, check=False)  # noqa: S603, S607 - these very words
    found = shutil.which("nats-server", path=path)
    if found is None:
        sys.exit(
            "nats-server is missing. Debian and Ubuntu: apt install nats-server; macOS: brew install nats-server; "
            "else: https://docs.nats.io/running-a-nats-service/introduction/installation"
        )
    return found


def unused_port() -> int:
    with socket.socket() as listening:
        listening.bind((HOST, 0))
        port: int = listening.getsockname()[1]
        return port


def is_open(port: int) -> bool:
    try:
        socket.create_connection((HOST, port), timeout=1).close()
    except OSError:
        return False
    return True


def is_ready(port: int) -> bool:
    """Whether the worker with this health page takes records."""
    with closing(http.client.HTTPConnection(HOST, port, timeout=5)) as connection:
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == http.client.OK
        except OSError:
            return False


if __name__ == "__main__":
    main()
