"""Programs that run beside each other, with what they write shown behind their names, as Procfile runners do."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

HOST = "127.0.0.1"
_STOPPING = 30.0  # seconds for a program that is told to end
_WIDTH = 9  # columns for the names
_POLL = 0.05  # seconds
_ENDINGS = (signal.SIGINT, signal.SIGTERM)

_printing = threading.Lock()


def show(name: str, line: str) -> None:
    with _printing:
        print(f"{name:{_WIDTH}}| {line}", flush=True)


@contextmanager
def programs_within(patience: float) -> Iterator[Programs]:
    """Programs that end with the block: the last one first, also after Ctrl-C or where one of them fails.

    Args:
        patience: seconds for all of them together.
    """
    for number in _ENDINGS:
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    programs = Programs(patience)
    try:
        yield programs
    finally:
        for number in _ENDINGS:
            signal.signal(number, signal.SIG_IGN)
        programs.end()


class Programs:
    """Programs of which each may fail, and which all together have so many seconds."""

    def __init__(self, patience: float) -> None:
        self._deadline = time.monotonic() + patience
        self._running: list[tuple[str, subprocess.Popen[str], threading.Thread]] = []

    def start(self, name: str, *command: str, **settings: str) -> None:
        """Start a program with these variables, and none of ragspan's or OpenTelemetry's but these."""
        inherited = {key: text for key, text in os.environ.items() if not key.startswith(("OTEL_", "RAGSPAN_"))}
        process = subprocess.Popen(  # noqa: S603 - of this example's own making
            command,
            env={**inherited, "NO_PROXY": HOST, "PYTHONUNBUFFERED": "1", **settings},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,  # Ctrl-C is for this program, which ends the others in their order
        )
        reader = threading.Thread(target=_show_lines, args=(name, process), daemon=True)
        reader.start()
        self._running.append((name, process, reader))

    def wait_until(self, condition: Callable[[], bool], *, what: str) -> None:
        """Wait for the condition.

        Raises:
            SystemExit: a program has failed, or the patience is over.
        """
        while not condition():
            for name, process, _ in self._running:
                if process.poll() not in {None, 0}:
                    sys.exit(f"{name} ended with {process.returncode}")
            if time.monotonic() > self._deadline:
                sys.exit(f"waited too long for {what}")
            time.sleep(_POLL)

    def end(self) -> None:
        while self._running:
            self._end(*self._running.pop())

    def _end(self, name: str, process: subprocess.Popen[str], reader: threading.Thread) -> None:
        process.terminate()
        try:
            process.wait(_STOPPING)
        except subprocess.TimeoutExpired:
            show(name, "does not end, and is killed")
            process.kill()
            process.wait()
        reader.join(_STOPPING)
        if process.stdout is not None:
            process.stdout.close()


def _show_lines(name: str, process: subprocess.Popen[str]) -> None:
    for line in process.stdout or ():
        show(name, line.rstrip())
