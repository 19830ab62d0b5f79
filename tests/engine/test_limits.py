"""Processes that the system gives no threads: one line says so at once, and the application goes on."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform == "win32", reason="has other limits")]

PROGRAM = """
import sys, threading
import ragspan
import ragspan.judges.screen.judge, ragspan.text.languages, ragspan.text.responses  # before anything is short

threading.stack_size(1 << 46)  # no system has so much: no thread can be started
configured = ragspan.configure(emitters=["otel"])
for number in range(3):
    with ragspan.capture(question=f"q{number}?") as answer:
        answer.contexts, answer.response = ["The fee is 5 euros."], "It is 5 euros."
print("answered", file=sys.stderr)
"""


def run(**environment):
    """What it writes to its log, line by line."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={"PATH": "", "NO_PROXY": "*", "RAGSPAN_EXIT_TIMEOUT": "0.5", "RAGSPAN_JUDGING": "thread", **environment},
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr.splitlines()


@pytest.mark.parametrize("endpoint", ["", "http://127.0.0.1:9"])
def test_where_no_thread_can_be_started_it_is_said_with_the_first_answer(endpoint):
    lines = run(OTEL_EXPORTER_OTLP_ENDPOINT=endpoint)

    said = lines[: lines.index("answered")]
    [line] = [line for line in said if line.startswith("ragspan: no thread can be started (can't start new thread)")]
    assert line.endswith("see the limits of threads (ulimit -u, pids.max) and of memory")
    assert any("no span is exported: can't start new thread" in line for line in said) == bool(endpoint)
    assert lines[-1].startswith("ragspan: answers that are not scored, because the process ended: 3")
