"""Machines that give a program less than it is used to; frozen programs, many event loops, notebooks."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="uses what Linux has")

GROUNDED = pytest.approx(1.0, abs=0.1)
RUN = "import os, sys; {before}; os.execv(sys.executable, [sys.executable, 'program.py'])"


@pytest.fixture
def unshare():
    """Begins a command with namespaces of its own, as containers have."""
    if (
        os.geteuid()
        or not shutil.which("unshare")
        or subprocess.run(["unshare", "--mount", "true"], check=False).returncode
    ):
        if os.environ.get("CI") == "true":
            pytest.fail("no namespaces can be made")
        pytest.skip("only root can make namespaces")
    return lambda *arguments: ("-c", f"import os; os.execvp('unshare', ['unshare', *{arguments!r}])")


def children_of(pid):
    children = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            _, _, rest = status.read_text().rpartition(")")
        except OSError:
            continue  # it has ended
        if int(rest.split()[1]) == pid:
            children.append(int(status.parent.name))
    return children


def state_of(pid):
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


@on_linux
def test_where_nothing_can_be_written_and_nobody_has_a_home(start, scores, unshare):
    program = start(
        """
        import tempfile
        try:
            tempfile.gettempdir()
        except OSError:
            print("no place for files")
        answer("answer")
        print(engine.flush(60))
        """,
        *unshare(
            *("--mount", "sh", "-c"),
            f"mount -o remount,bind,ro / && exec env -u HOME TMPDIR=/not/there {sys.executable} program.py",
        ),
        JUDGE="overlap",
    )

    assert program.wait() == 0
    assert program.output == ["no place for files", "True"]
    assert scores() == {"answer": GROUNDED}


@on_linux
def test_a_daemon_whose_descriptors_are_closed(start, scores, tmp_path):
    program = start(
        """
        import logging
        logging.basicConfig(filename="log")
        answer("answer")
        """,
        *("-c", RUN.format(before="os.closerange(0, 3)")),
        JUDGE="overlap",
    )

    assert program.wait() == 0
    assert (tmp_path / "log").read_text() == ""
    assert scores() == {"answer": GROUNDED}


@on_linux
def test_a_function_that_is_frozen_between_its_requests(start, scores):
    program = start(
        """
        for number in range(3):
            answer(f"answer {number}")
            print("flushed", engine.flush(60))
            wait_for_test()
        """,
        JUDGE="overlap",
    )
    for _ in range(3):
        program.line_with("flushed True")
        both = [program.pid, *children_of(program.pid)]
        assert len(both) == 2
        for pid in both:
            os.kill(pid, signal.SIGSTOP)
        while not all(state_of(pid) == "T" for pid in both):
            time.sleep(0.01)
        for pid in both:
            os.kill(pid, signal.SIGCONT)
        program.let_go_on()

    assert program.wait() == 0
    assert scores() == {f"answer {number}": GROUNDED for number in range(3)}


@on_linux
def test_the_first_process_of_a_container_that_is_told_to_end(start, judge, scores, unshare):
    """The kernel ignores a signal that the first process has no handler for."""
    program = start(
        """
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        answer("answer")
        print("process", os.getpid())
        signal.pause()
        """,
        *unshare("--pid", "--fork", "--mount-proc", "--kill-child", sys.executable, "program.py"),
    )
    program.line_with("process 1$")
    judge.wait_until_asked(1)
    [first] = children_of(program.pid)
    os.kill(first, signal.SIGTERM)
    judge.release()

    assert program.wait() == 0
    assert scores() == {"answer": 1.0}


# Frozen applications, which have no interpreter to start as a helper: a thread judges, whatever the application is called

PROGRAM = """
import os, sys
from pathlib import Path

starts = Path(os.environ["STARTS"])
with starts.open("a") as file:
    file.write("started\\n")
if len(starts.read_text().splitlines()) > 3:
    os._exit(9)  # it started itself, again and again

import ragspan

if __name__ == "__main__":
    engine = ragspan.default_engine()
    engine.submit(ragspan.RagRecord(question="Why?", contexts=["Because it rains."], response="Because it rains."))
    print(engine.flush(60), engine.stats().finished)
"""


@pytest.fixture
def run(tmp_path):
    """Runs a command; returns what it printed and how often the program has started."""

    def run_command(*command):
        starts = tmp_path / "starts"
        starts.touch()
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=600,
            cwd=tmp_path,
            env=os.environ | {"STARTS": str(starts), "RAGSPAN_JUDGE": "overlap"},
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout, done.stderr, len(starts.read_text().splitlines())

    return run_command


def test_what_pyinstaller_made_judges_in_a_thread_though_its_name_is_that_of_an_interpreter(run, tmp_path: Path):
    pytest.importorskip("PyInstaller", reason="runs in `make test-environments`")
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    without = [f"--exclude-module={name}" for name in ("IPython", "gevent", "hypothesis", "pytest", "tkinter", "zmq")]
    run(sys.executable, "-m", "PyInstaller", "--log-level=ERROR", *without, "--name=python-service", "program.py")
    output, log, starts = run(str(tmp_path / "dist" / "python-service" / "python-service"))

    assert output == "True 1\n"
    assert "this application is frozen" in log
    assert starts == 1


# Many event loops, and the cells of a notebook


def test_a_program_with_an_event_loop_for_each_request(start, judge, scores):
    """The engine has a loop of its own, and keeps nothing of theirs."""
    judge.release()
    program = start("""
        import asyncio, ragspan

        async def give(name):
            with ragspan.capture(question="Why?", sink=engine, name=name) as captured:
                captured.contexts = ["Because."]
                captured.response = "Because."

        def serve(first):
            for number in range(first, first + 20):
                asyncio.run(give(f"answer {number}"))

        threads = [threading.Thread(target=serve, args=[20 * number]) for number in range(10)]
        for thread in threads:
            thread.start()
    """)

    assert (program.wait(), program.output) == (0, [])
    assert scores() == {f"answer {number}": 1.0 for number in range(200)}


def test_a_notebook_whose_kernel_is_shut_down(start, judge, scores, tmp_path):
    """`jupyter execute` runs its cells and shuts its kernel down, as JupyterLab does."""
    pytest.importorskip("nbclient", reason="runs in `make test-environments`")
    cells = ["from program import *", "answer('first')", "import asyncio; await asyncio.sleep(0); answer('second')"]
    (tmp_path / "notebook.ipynb").write_text(json.dumps(notebook_of(cells)), encoding="utf-8")
    program = start("", *("-c", "from nbclient.cli import main; main()", "notebook.ipynb"))
    judge.wait_until_asked(2)
    judge.release()

    assert program.wait() == 0
    assert scores() == {"first": 1.0, "second": 1.0}


def notebook_of(cells):
    return {
        "nbformat": 4,
        "nbformat_minor": 5,
        "metadata": {"kernelspec": {"name": "python3", "display_name": "python3"}},
        "cells": [
            {
                "id": str(number),
                "cell_type": "code",
                "source": cell,
                "metadata": {},
                "outputs": [],
                "execution_count": None,
            }
            for number, cell in enumerate(cells)
        ],
    }


SUBINTERPRETER = (
    """
import sys
inside = """
    + repr("""
import ragspan
sink = ragspan.configure().sink
sink.submit(ragspan.RagRecord(question="q", contexts=["c"], response="r"))
print(sink.stats().dropped, flush=True)
""")
    + """
if sys.version_info >= (3, 13):
    import _interpreters
    _interpreters.exec(_interpreters.create("legacy"), inside)
else:
    import _xxsubinterpreters
    _xxsubinterpreters.run_string(_xxsubinterpreters.create(isolated=False), inside)
"""
)


def test_a_subinterpreter_scores_nothing_and_says_so_and_the_process_ends(start):
    program = start("", "-c", SUBINTERPRETER, OTEL_TRACES_EXPORTER="otlp")

    program.line_with("ragspan is off in a subinterpreter")
    program.line_with("not_running")
    assert program.wait() == 0
