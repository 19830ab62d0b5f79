"""The count of functions that one record enters runs, and finds all packages that it goes through."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "call_depth.py"


def test_a_record_enters_functions_of_the_engine_and_of_its_emitter(tmp_path):
    file = tmp_path / "figures.json"
    command = [sys.executable, BENCHMARK, "--quick", "--json", file]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    figures = json.loads(file.read_text(encoding="utf-8"))

    assert {"engine", "telemetry"} <= set(figures["packages"])
    assert figures["functions"] == sum(package["functions"] for package in figures["packages"].values())
