"""A process that is killed in the middle, and the one that goes on."""

from __future__ import annotations

import json
import signal
import subprocess
import sys

import pytest

from ragspan.datasets.journal import journal_of

pytestmark = pytest.mark.slow

PROGRAM = """
import os, signal, sys
from ragspan.datasets import evaluate
from ragspan.outcomes import Score

table, output, dies_at, resume = sys.argv[1:]

class Deadly:
    name = "deadly"

    async def score(self, record):
        if record.question == dies_at:
            os.kill(os.getpid(), signal.SIGKILL)
        return Score(value=len(record.response) / 100, explanation=record.question)

evaluation = evaluate(table, ["faithfulness", Deadly()], output=output, resume=resume == "resume")
print(evaluation.rows, len(evaluation.worst))
"""


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "table.jsonl"
    rows = [
        {
            "question": f"q{number}",
            "contexts": [f"The tower has {number} steps."],
            "answer": f"It has {number % 7} steps." * (number % 3),
        }
        for number in range(300)
    ]
    rows[20]["answer"] = ["no text"]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def run(table, output, *, dies_at="never", resume=False):
    command = [sys.executable, "-c", PROGRAM, str(table), str(output), dies_at, "resume" if resume else "anew"]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_the_result_file_is_the_same_to_the_byte(table, tmp_path, ending):
    whole, output = tmp_path / f"whole.{ending}", tmp_path / f"killed.{ending}"
    uninterrupted = run(table, whole)
    killed = run(table, output, dies_at="q150")
    rows_kept = journal_of(output).read_bytes().count(b"\n") - 1
    twice = run(table, output, dies_at="q250", resume=True)
    resumed = run(table, output, resume=True)

    assert (killed.returncode, twice.returncode) == (-signal.SIGKILL, -signal.SIGKILL)
    assert 0 < rows_kept <= 150
    assert (resumed.returncode, resumed.stderr) == (0, "")
    assert resumed.stdout == uninterrupted.stdout
    assert output.read_bytes() == whole.read_bytes()
    assert not journal_of(output).exists()
