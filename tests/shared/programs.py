"""Programs in processes of their own."""

from __future__ import annotations

import contextlib
import os
import queue
import re
import signal
import subprocess
import sys
import threading

from waiting import PATIENCE


def run_python(*arguments, folder=None, environment=None, timeout=120):
    """A Python program that has ended, with its status and what it wrote; the environment is all that it has, if given."""
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout,
        cwd=folder,
        env=environment,
    )


def output_of(*arguments, **options):
    """What a Python program prints, which has to end well."""
    done = run_python(*arguments, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


class Program:
    """A running Python program, whose lines can be waited for."""

    def __init__(self, *arguments, folder, environment):
        self.output = []
        self._lines = queue.SimpleQueue()
        self.process = subprocess.Popen(
            [sys.executable, "-X", "faulthandler", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=folder,
            env=os.environ | environment,
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def pid(self):
        return self.process.pid

    def line(self):
        return self._lines.get(timeout=PATIENCE)

    def line_with(self, pattern):
        """The match in the next line that has one."""
        while True:
            try:
                match = re.search(pattern, self.line())
            except queue.Empty:
                raise AssertionError(f"no line with {pattern!r} in: {self.output}") from None
            if match:
                return match

    def server_address(self):
        """Where a server says that it listens; the line of `ragspan run` names where scores go."""
        return self.line_with(r"^(?!ragspan: ).*?(http://127\.0\.0\.1:\d+)")[1]

    def rest(self):
        """The lines until its end, which has to be a good one.

        With `-X dev` asyncio has a line for a step that took a tenth of a second, on a busy machine say: it is left out.
        """
        assert self.wait() == 0, self.output
        lines = []
        while not self._lines.empty():
            lines.append(self._lines.get())
        return [line for line in lines if not line.startswith("Executing <")]

    def let_go_on(self):
        """Ends the program's `wait_for_test()`."""
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def send(self, number):
        self.process.send_signal(number)

    def wait(self):
        """How it ended, as `subprocess` tells it."""
        status = self.process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        return status

    def close(self):
        """End it with all its children, unless it has ended."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.wait()
        self.process.stdin.close()
        self.process.stdout.close()

    def _read(self):
        for line in self.process.stdout:
            self.output.append(line.rstrip())
            self._lines.put(line.rstrip())
