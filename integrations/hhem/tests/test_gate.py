"""What keeps torch from being in the middle of something when the process forks or ends."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest

from ragspan_hhem.network import GATE, Gate

PATIENCE = 60.0  # seconds; importing torch takes some of them

ENDS_WHILE_TORCH_IS_AT_WORK = """
import threading, torch
from ragspan_hhem.network import GATE

def compute(is_at_work, matrix=torch.ones(2000, 2000)):
    with GATE:
        is_at_work.set()
        while True:
            GATE.step()
            matrix = matrix @ matrix

is_at_work = threading.Event()
threading.Thread(target=compute, args=[is_at_work], daemon=True).start()
is_at_work.wait()
print("the end", flush=True)
"""


@pytest.fixture
def gate():
    return Gate(patience=0.0)


def in_thread(call):
    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    return thread


def test_a_closed_gate_is_empty(gate):
    with gate:
        assert not gate.close()
        gate.open()

    assert gate.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # that of a process with threads is what is tested
def test_a_fork_finds_nobody_in_the_middle_of_a_step_and_the_gate_open():
    is_at_work, is_over, began = [False], threading.Event(), threading.Event()

    def work():
        with GATE:
            while not is_over.is_set():
                is_at_work[0] = True
                sum(range(20_000))
                is_at_work[0] = False
                began.set()
                GATE.step()

    worker = in_thread(work)
    began.wait(PATIENCE)
    try:
        for _ in range(5):  # a fork that does not wait finds somebody nine times of ten
            pid = os.fork()
            if not pid:
                was_at_work = is_at_work[0]
                with GATE:
                    os._exit(was_at_work)
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    finally:
        is_over.set()
        worker.join(PATIENCE)


def test_a_process_that_ends_while_torch_is_at_work_ends_well():
    pytest.importorskip("torch", reason="torch is not installed")
    ended = subprocess.run(
        [sys.executable, "-c", ENDS_WHILE_TORCH_IS_AT_WORK],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )

    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "the end\n", "")
