"""A frozen application, which has no interpreter to start as a helper: a thread judges, whatever the application is called."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

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
    if sys.argv[1:] == ["as if frozen"]:
        sys.frozen = True
    engine = ragspan.default_engine()
    engine.submit(ragspan.RagRecord(question="Why?", contexts=["Because it rains."], response="Because it rains."))
    print(engine.flush(60), engine.stats().scored)
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


def test_a_program_that_says_it_is_frozen_judges_in_a_thread(run, tmp_path: Path):
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    output, log, starts = run(sys.executable, "program.py", "as if frozen")

    assert output == "True 1\n"
    assert "this application is frozen" in log
    assert starts == 1


def test_what_pyinstaller_made_judges_in_a_thread_though_its_name_is_that_of_an_interpreter(run, tmp_path: Path):
    pytest.importorskip("PyInstaller", reason="runs in `make test-environments`")
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    without = [f"--exclude-module={name}" for name in ("IPython", "gevent", "hypothesis", "pytest", "tkinter", "zmq")]
    run(sys.executable, "-m", "PyInstaller", "--log-level=ERROR", *without, "--name=python-service", "program.py")
    output, log, starts = run(str(tmp_path / "dist" / "python-service" / "python-service"))

    assert output == "True 1\n"
    assert "this application is frozen" in log
    assert starts == 1
