"""Processes that the system gives no threads or no descriptors: one line says so at once, and the application goes on."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform == "win32", reason="has other limits")]

PROGRAM = """
import os, resource, sys, threading
import ragspan
import ragspan.judges.screen.judge, ragspan.text.languages, ragspan.text.responses  # before anything is short

def ask():
    for number in range(3):
        with ragspan.capture(question=f"q{number}?") as answer:
            answer.contexts, answer.response = ["The fee is 5 euros."], "It is 5 euros."
    print("answered", file=sys.stderr)

"""


def run(program, **environment):
    """What it writes to its log, line by line."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM + textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={"PATH": "", "NO_PROXY": "*", "RAGSPAN_EXIT_TIMEOUT": "0.5", "RAGSPAN_JUDGING": "thread", **environment},
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr.splitlines()


NO_THREADS = """
    threading.stack_size(1 << 46)  # no system has so much: no thread can be started
    configured = ragspan.configure(emitters=["otel"])
    ask()
"""


@pytest.mark.parametrize("endpoint", ["", "http://127.0.0.1:9"])
def test_where_no_thread_can_be_started_it_is_said_with_the_first_answer(endpoint):
    lines = run(NO_THREADS, OTEL_EXPORTER_OTLP_ENDPOINT=endpoint)

    said = lines[: lines.index("answered")]
    [line] = [line for line in said if line.startswith("ragspan: no thread can be started (can't start new thread)")]
    assert line.endswith("see the limits of threads (ulimit -u, pids.max) and of memory")
    assert any("no span is exported: can't start new thread" in line for line in said) == bool(endpoint)
    assert lines[-1].startswith("ragspan: answers that are not scored, because the process ended: 3")


def test_what_waits_is_scored_once_there_are_threads_again():
    lines = run("""
        threading.stack_size(1 << 46)
        configured = ragspan.configure(emitters=["otel"])
        ask()
        threading.stack_size(0)
        assert configured.flush(60)
        print(configured.engine.stats().finished, file=sys.stderr)
    """)

    assert lines[-1] == "3"


def test_where_no_descriptor_is_left_there_is_a_line_and_no_traceback():
    lines = run("""
        configured = ragspan.configure(emitters=["otel"])
        few = len(os.listdir("/proc/self/fd")) - 1
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (few, most))
        ask()
        assert not configured.flush(1.5)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        assert configured.flush(60)
        print(configured.engine.stats().finished, file=sys.stderr)
    """)

    assert [line for line in lines if "nothing is scored" in line] == [
        "ragspan: nothing is scored: Too many open files; see ulimit -n"
    ]
    assert lines[-1] == "3"
