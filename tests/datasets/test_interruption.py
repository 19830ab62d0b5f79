"""Ctrl-C while an evaluation runs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace

import pytest

from ragspan.config import Settings
from ragspan.datasets.interruption import Interruption
from ragspan.datasets.metrics import metrics_for
from ragspan.datasets.plan import Plan, carry_out, journal_of


def press_ctrl_c():
    os.kill(os.getpid(), signal.SIGINT)


def test_while_a_row_is_worked_on_the_run_ends_after_it():
    with Interruption() as interruption:
        rows = interruption.reading(iter(range(10)))
        assert next(rows) == 0
        press_ctrl_c()

        assert interruption.is_requested()
        assert list(rows) == []


def test_while_rows_are_waited_for_the_wait_ends():
    def never_there():
        yield 0
        press_ctrl_c()
        yield 1

    with Interruption() as interruption:
        assert list(interruption.reading(never_there())) == [0]
        assert interruption.is_requested()


def test_before_the_first_row_it_is_as_ever():
    with Interruption(), pytest.raises(KeyboardInterrupt):
        press_ctrl_c()


def test_a_second_one_insists():
    with Interruption() as interruption:
        next(interruption.reading(iter([0])))
        press_ctrl_c()
        with pytest.raises(KeyboardInterrupt):
            press_ctrl_c()


def test_afterwards_all_is_as_before():
    before = signal.getsignal(signal.SIGINT)
    with Interruption():
        pass

    assert signal.getsignal(signal.SIGINT) is before


def plan_for(rows, output, judge, interruption, *, resume=False, stop_at=None):
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
        should_stop=interruption.is_requested,
        reading=interruption.reading,
    )


def test_what_is_done_is_kept_and_gone_on_with(judge, tmp_path):
    rows = [{"question": "q", "contexts": "c", "answer": f"r{number}"} for number in range(300)]
    output = tmp_path / "r.csv"
    with Interruption() as interruption:
        stopped = carry_out(plan_for(rows, output, judge, interruption, stop_at=100))
    kept = list(stopped.results())

    assert not stopped.is_complete
    assert 100 <= stopped.rows == len(kept) < 300
    assert not output.exists()

    with Interruption() as interruption:  # stopped again, while it goes through what was done
        again = carry_out(plan_for(rows, output, judge, interruption, resume=True, stop_at=50))
    assert (again.is_complete, len(list(again.results()))) == (False, len(kept))

    with Interruption() as interruption:
        finished = carry_out(plan_for(rows, output, judge, interruption, resume=True))
    assert (finished.rows, finished.is_complete, journal_of(output).exists()) == (300, True, False)


def test_before_a_row_is_done_nothing_is_left_behind(judge, rows, tmp_path):
    with Interruption() as interruption:
        plan = plan_for(rows, tmp_path / "r.csv", judge, interruption)
        stopped = carry_out(replace(plan, should_stop=lambda: True))

    assert (stopped.rows, stopped.is_complete, list(stopped.results())) == (0, False, [])
    assert list(tmp_path.iterdir()) == []


PROGRAM = """
import json, os, signal, sys, threading
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
