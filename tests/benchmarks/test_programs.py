"""Every program in `benchmarks/` runs, and writes figures."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from programs import run_python

pytestmark = pytest.mark.slow

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
QUICK = {
    "alarms.py": ("--quick",),
    "background_tokens.py": (),
    "capture.py": ("--quick",),
    "embedded_judge.py": ("--quick",),
    "hot_path.py": ("--quick",),
    "judge_cost.py": ("--quick",),
    "long_requests.py": ("--quick",),
    "rates.py": ("--quick",),
    "receiving.py": ("--quick", "--rate", "500"),
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


def test_causes_are_counted_for_a_set_of_human_judgements(tmp_path):
    context = "The oldest bakery of Lisbon sells round loaves of dark bread every Monday."
    row = {"question": "What is sold?", "contexts": [context], "response": context, "supported": True}
    (tmp_path / "made_up.jsonl.gz").write_bytes(
        gzip.compress("".join(json.dumps(row | {"source_id": str(number)}) + "\n" for number in range(8)).encode())
    )
    file = tmp_path / "figures.json"
    done = run_python(BENCHMARKS / "causes.py", tmp_path, "--quick", "--json", file, timeout=300)

    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(file.read_text(encoding="utf-8"))["made_up"]
