"""The benchmark of the fleet runs, scores every record once and measures something."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (shutil.which("nats-server") or shutil.which("nats-server", path="/usr/sbin") or os.environ.get("CI")),
        reason="nats-server is not installed",
    ),
]

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "fleet.py"


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """The figures of a quick run, which ends with an error unless every record was scored once."""
    file = tmp_path_factory.mktemp("fleet") / "figures.json"
    done = subprocess.run(
        [sys.executable, BENCHMARK, "--quick", "--json", file], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(file.read_text(encoding="utf-8"))


def test_one_worker_and_two_are_measured(measured):
    (runs,) = measured["rounds"]

    assert [run["workers"] for run in runs] == [1, 2]
    assert [summary["workers"] for summary in measured["summaries"]] == [1, 2]
    assert all(run["per_second"] > 0 and run["worker_ms"] > 0 and run["message_bytes"] > 0 for run in runs)


def test_the_ratio_is_that_of_the_rates(measured):
    (runs,) = measured["rounds"]

    assert measured["summaries"][1]["ratio"] == pytest.approx(runs[1]["per_second"] / runs[0]["per_second"])


def test_both_judges_show_their_ceiling(measured):
    assert [run["judge"] for run in measured["ceilings"]] == ["openai:at-once", "overlap"]
