"""A tool's server as a process of the tests': started, watched, stopped and started again on the same port and data."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

import httpx

ARTEFACTS = Path(__file__).parents[1] / "artefacts"
"""Where logs and pictures go."""
READY_SECONDS = 300.0  # a first start on a busy machine
STOP_SECONDS = 30.0
_POLL_SECONDS = 0.1


class NotReadyError(Exception):
    """The server did not come up, or what was waited for did not come about."""


def free_port(wished: int = 0) -> int:
    """A port of the loopback interface that nobody listens on at the moment: the one that is wished for, if it is free."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", wished))
        except OSError:
            return free_port()
        return listener.getsockname()[1]


def eventually(ask, *, seconds, what, until=bool):
    """The first answer of `ask` that satisfies `until`; it is asked again until the time is up.

    Raises:
        NotReadyError: the time is up; the message says `what` was waited for, and the last answer.
    """
    deadline = time.monotonic() + seconds
    while not until(answer := ask()):
        if time.monotonic() > deadline:
            raise NotReadyError(f"after {seconds:.0f} s still waiting for {what}; the last answer was {answer!r}")
        time.sleep(_POLL_SECONDS)  # between two questions to another process, which can tell nobody by itself
    return answer


@dataclass
class Server:
    """One server.

    Its processes form a group of their own, and nothing but that group is ever signalled.
    """

    command: list[str]
    environment: dict[str, str]
    url: str
    health: str
    """The path that answers 200 when the server is ready."""
    log: Path
    _process: subprocess.Popen | None = field(default=None, init=False)

    def start(self) -> None:
        """Start it, and return when it is ready."""
        self.launch()
        self.wait_until_ready()

    def launch(self) -> None:
        """Start it, and do not wait."""
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self.command,
                env=os.environ | self.environment,
                cwd=self.log.parent,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def wait_until_ready(self) -> None:
        eventually(self._is_ready, seconds=READY_SECONDS, what=f"{self.url}{self.health} (see {self.log})")

    def stop(self) -> None:
        """Ask it to end, and see to it that it has."""
        process, self._process = self._process, None
        if process is None:
            return
        _signal_group(process, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(STOP_SECONDS)
        _signal_group(process, signal.SIGKILL)  # and whatever it left behind
        process.wait()

    def _is_ready(self) -> bool:
        if self._process is None or self._process.poll() is not None:
            raise NotReadyError(f"the server at {self.url} ended by itself; see {self.log}")
        try:
            return httpx.get(self.url + self.health, timeout=5, trust_env=False).status_code == httpx.codes.OK
        except httpx.HTTPError:
            return False


def _signal_group(process: subprocess.Popen, which: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):  # it is gone already
        os.killpg(process.pid, which)
