"""A newcomer's lines, as the README has them: from wheels in an empty environment to Phoenix's annotation column.

Run with `-s` it prints how long each took.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
import venv
from pathlib import Path

import pytest

from backends.server import eventually
from phoenix_screen import PhoenixScreen

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PROGRAM = (ROOT / "tests" / "applications" / "plain.py").read_text(encoding="utf-8")


def readme(pattern):
    """The one line, or part of a line, of the README that looks so."""
    (found,) = set(re.findall(pattern, README, re.MULTILINE))
    return found


@pytest.fixture
def shell(tmp_path):
    """Runs lines in an empty environment that finds ragspan's wheels."""
    members = [ROOT, ROOT / "integrations" / "langchain"]
    wheels = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", tmp_path / "dist", *members]
    subprocess.run(wheels, check=True)
    venv.create(tmp_path / "clean", with_pip=True)
    variables = {
        "PATH": f"{tmp_path / 'clean' / 'bin'}:/usr/bin:/bin",
        "PIP_FIND_LINKS": str(tmp_path / "dist"),
        "PIP_CONSTRAINT": str(ROOT / "constraints.txt"),
    }

    def run(line):
        began = time.perf_counter()
        done = subprocess.run(
            ["/bin/bash", "-euc", line],
            cwd=tmp_path,
            env={**os.environ, **variables},
            capture_output=True,
            text=True,
            check=False,
        )
        sys.stdout.write(f"{time.perf_counter() - began:6.1f} s  {line}\n")
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


def test_three_lines_to_the_console_and_two_more_to_the_annotations(shell, screen, phoenix, tmp_path):
    program = tmp_path / "app.py"
    shell(readme(r'^pip install "ragspan\[langchain\]"'))
    program.write_text(f"import ragspan\n\nragspan.configure()\n{PROGRAM}", encoding="utf-8")
    assert "faithfulness         1.00 pass" in shell("python app.py")

    shell(readme(r'pip install "ragspan\[phoenix\]"'))
    line = readme(r'^ragspan\.configure\(phoenix="http://localhost:6006".*?\)').replace(
        "http://localhost:6006", phoenix.url
    )
    program.write_text(f"import ragspan\n\n{line}\n{PROGRAM}", encoding="utf-8")
    assert "faithfulness" not in shell("python app.py"), "the scores are in Phoenix, not on the console"

    shown = PhoenixScreen(screen, phoenix)
    eventually(lambda: phoenix.spans("default"), seconds=60, what="the spans")
    shown.open_spans("default")
    shown.widen("annotations", by=500)  # Phoenix shows how many there are where their names do not fit
    eventually(
        lambda: shown.column("annotations"),
        until=lambda cells: any("faithfulness" in cell and "1.00" in cell for cell in cells),
        seconds=60,
        what="the score in the column",
    )
    assert "When are card payments settled?" in "".join(shown.column("input"))
