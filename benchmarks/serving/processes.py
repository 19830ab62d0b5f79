"""Starts the programs of a benchmark in processes of their own, and ends them.

A program says that it is ready with a line of JSON; one that serves names its port there.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HOST = "127.0.0.1"
PATIENCE = 60.0
"""Seconds that a request, or the end of a program, may take."""

_BENCHMARKS = Path(__file__).parents[1]
_NOT_INHERITED = ("OTEL_", "RAGSPAN_", "OPENAI_")


@dataclass(frozen=True, kw_only=True, slots=True)
class Program:
    """A program that is running."""

    process: subprocess.Popen[str]
    port: int
    """0 if it does not serve."""

    @property
    def pid(self) -> int:
        return self.process.pid

    def read_line(self) -> Any:
        """The next line of JSON that it prints.

        Raises:
            RuntimeError: it ended instead.
        """
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.process.args!r} ended with {self.process.wait(PATIENCE)}")
        return json.loads(line)

    def get(self, path: str) -> Any:
        """The JSON that it serves there.

        Raises:
            RuntimeError: the answer was an error.
        """
        with closing(http.client.HTTPConnection(HOST, self.port, timeout=PATIENCE)) as connection:
            connection.request("GET", path)
            response = connection.getresponse()
            body = response.read()
            if response.status != http.client.OK:
                raise RuntimeError(f"{path} answered {response.status}")
            return json.loads(body)

    def tell(self, **what: object) -> None:
        """Send it a line of JSON."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(what) + "\n")
        self.process.stdin.flush()

    def end(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()


def start(
    module: str, *arguments: object, environment: Mapping[str, str] | None = None, python: str = sys.executable
) -> Program:
    """Start a module of `benchmarks` as a program, and wait until it is ready.

    It inherits no settings of OpenTelemetry, OpenAI or ragspan, and reaches this machine past any proxy.
    """
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(_NOT_INHERITED)}
    process = subprocess.Popen(
        [python, "-m", module, *map(str, arguments)],
        cwd=_BENCHMARKS,
        env={**inherited, "NO_PROXY": HOST, **(environment or {})},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    port = Program(process=process, port=0).read_line()["port"]
    return Program(process=process, port=port)


@contextmanager
def running(
    module: str, *arguments: object, environment: Mapping[str, str] | None = None, python: str = sys.executable
) -> Iterator[Program]:
    """`start`, and the end of the program with the block."""
    program = start(module, *arguments, environment=environment, python=python)
    try:
        yield program
    finally:
        program.end()


def end_on_sigterm() -> None:
    """Have this process end in order when it is asked to, so that what it has started ends with it."""
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))


def say(**what: object) -> None:
    """Print a line for whoever started this program."""
    print(json.dumps(what), flush=True)
