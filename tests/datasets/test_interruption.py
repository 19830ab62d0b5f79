"""Ctrl-C while an evaluation runs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace

import pytest

from ragspan.config import Settings
from ragspan.datasets.evaluation import metrics_for
from ragspan.datasets.journal import journal_of
from ragspan.datasets.run import Plan, run


@pytest.fixture(autouse=True)
def ctrl_c():
    """Ctrl-C interrupts, also where the tests run in a shell's background, which ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def press_ctrl_c():
    os.kill(os.getpid(), signal.SIGINT)


def plan_for(rows, output, judge, *, resume=False, stop_at=None):
    def on_row(standing):
        if standing.rows == stop_at:
            press_ctrl_c()

    settings = Settings()
    return Plan(
        data=rows,
        metrics=metrics_for("faithfulness", settings, judge),
        settings=settings,
        output=output,
        resume=resume,
        on_row=on_row,
        ends_on_ctrl_c=True,
    )


def test_what_is_done_is_kept_and_gone_on_with(judge, tmp_path):
    rows = [{"question": "q", "contexts": "c", "answer": f"r{number}"} for number in range(300)]
    output = tmp_path / "r.csv"
    stopped = run(plan_for(rows, output, judge, stop_at=100))
    kept = list(stopped.results())

    assert not stopped.is_complete
    assert 100 <= stopped.rows <= len(kept) < 300
    assert not output.exists()

    # Stopped again, while it goes through what was done.
    again = run(plan_for(rows, output, judge, resume=True, stop_at=50))
    assert (again.is_complete, len(list(again.results()))) == (False, len(kept))

    finished = run(plan_for(rows, output, judge, resume=True))
    assert (finished.rows, finished.is_complete, journal_of(output).exists()) == (300, True, False)


def test_before_a_row_is_done_nothing_is_left_behind(judge, rows, tmp_path):
    plan = plan_for(rows, tmp_path / "r.csv", judge)
    stopped = run(replace(plan, on_begin=lambda _: press_ctrl_c()))

    assert (stopped.rows, stopped.is_complete, list(stopped.results())) == (0, False, [])
    assert list(tmp_path.iterdir()) == []


PROGRAM = """
import json, os, signal, sys, threading
signal.signal(signal.SIGINT, signal.default_int_handler)
reading, writing = os.pipe()
os.dup2(reading, 0)

def feed():
    row = json.dumps({"question": "q", "contexts": ["c"] * 100, "answer": "c"}) + "\\n"
    for _ in range(800):  # more than a pipe holds: the command is reading when the last of it is written
        os.write(writing, row.encode())
    os.kill(os.getpid(), signal.SIGINT)

threading.Thread(target=feed, daemon=True).start()
from ragspan.cli import app
app(["evaluate", "-", "--format", "jsonl", "--metrics", "context_utilization", "--output", sys.argv[1], "--quiet"])
"""


@pytest.mark.slow
def test_the_command_says_what_is_done_and_how_to_go_on(tmp_path):
    output = tmp_path / "r.csv"
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(output)],
        env={**os.environ, "RAGSPAN_JUDGING": "thread"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert (done.returncode, "Traceback" in done.stderr) == (130, False), done.stderr
    assert f"What is done is saved in {journal_of(output)}: continue with the same command and --resume." in done.stderr
    assert "abandoned" not in done.stderr
    assert "time" not in done.stderr
    assert "context_utilization" in done.stdout
    assert journal_of(output).exists()
    assert not output.exists()
