"""Every program in `benchmarks/` runs, and writes figures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from programs import run_python

pytestmark = pytest.mark.slow

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
QUICK = {
    "capture.py": ("--quick",),
    "embedded_judge.py": ("--quick",),
    "footprint.py": ("--answers", "2"),
    "hot_path.py": ("--quick",),
    "judge_cost.py": ("--quick",),
    "long_requests.py": ("--quick",),
    "share.py": ("--quick",),
    "tail_latency.py": ("--quick", "--rate", "40"),
    "throughput.py": ("--quick",),
}
"""By program: the arguments of a run that takes seconds. Those that are not here need a key, a broker or a model."""


@pytest.mark.parametrize("program", QUICK)
def test_a_quick_run_writes_figures(program, tmp_path):
    file = tmp_path / "figures.json"
    done = run_python(BENCHMARKS / program, *QUICK[program], "--json", file, timeout=300)

    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(file.read_text(encoding="utf-8"))
