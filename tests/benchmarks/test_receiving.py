"""The benchmark of the receiver runs, and counts every trace."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"

pytestmark = pytest.mark.slow


def test_every_trace_is_read_or_refused(tmp_path):
    file = tmp_path / "figures.json"
    command = [sys.executable, "receiving.py", "--quick", "--rate", "500", "--json", file]
    subprocess.run(command, cwd=BENCHMARKS, check=True, capture_output=True)
    rows = {row["traces"]: row for row in json.loads(file.read_text())}

    assert list(rows) == ["read", "too little memory"]
    assert [row["lost"] for row in rows.values()] == [0, 0]
    assert rows["read"]["refused"] == 0
    assert 0 < rows["too little memory"]["refused"] < rows["too little memory"]["sent"]
