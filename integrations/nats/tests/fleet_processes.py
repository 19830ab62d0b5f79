"""The workers of a fleet as processes, each with a file for what it says."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request

from waiting import until

PATIENCE = 120.0  # seconds; only a test that fails waits for so long
POLL = 0.05  # seconds
_ADDRESS = re.compile(r"health at (http://\S+)/healthz")


class FleetWorker:
    """A process with `ragspan worker`.

    Args:
        name: its key for the judge, and its name with the backend.
        arguments: of the command.
        environment: all of it.
        log: a file for what it says.
    """

    def __init__(self, name, *, arguments, environment, log):
        self.name = name
        self._log = log
        with log.open("wb") as file:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "ragspan.cli", "worker", *arguments],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
            )

    @property
    def log(self):
        return self._log.read_text(encoding="utf-8", errors="replace")

    @property
    def is_running(self):
        return self._process.poll() is None

    @property
    def is_ready(self):
        return bool(self.figures().get("ready"))

    def figures(self):
        """What its health page shows; nothing while there is none."""
        address = _ADDRESS.search(self.log)
        if address is None:
            assert self.is_running, f"worker {self.name} ended:\n{self.log}"
            return {}
        try:
            with urllib.request.urlopen(f"{address[1]}/healthz", timeout=30) as page:
                return json.load(page)
        except urllib.error.HTTPError as error:
            with error:
                return json.load(error)
        except OSError:
            return {}

    def until(self, condition, what):
        """What the condition gives at last, while the worker runs."""

        def checked():
            assert self.is_running, self.log
            return condition()

        return until(checked, what=f"{what}\n{self.log}", patience=PATIENCE)

    def ends(self, number=signal.SIGTERM):
        """Ask it to end; its exit status."""
        self.send(number)
        return self.ended()

    def send(self, number):
        self._process.send_signal(number)

    def stop(self):
        """Ask it to end, as a service manager does."""
        self.send(signal.SIGTERM)

    def kill(self):
        """End it without a chance to clean up."""
        self._process.kill()
        self._process.wait()

    def ended(self, patience=PATIENCE):
        """Wait for its end; its exit status."""
        try:
            return self._process.wait(patience)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"worker {self.name} did not end in {patience:g} s:\n{self.log}") from None
