"""The benchmark of long requests runs and measures every kind of request."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.alone]

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "long_requests.py"


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """The rows of a quick run by the name of the request."""
    file = tmp_path_factory.mktemp("long_requests") / "figures.json"
    done = subprocess.run(
        [sys.executable, BENCHMARK, "--quick", "--json", file], capture_output=True, text=True, check=False, timeout=240
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return {row["case"]: row for row in json.loads(file.read_text(encoding="utf-8"))}


def test_every_request_is_measured_at_two_sizes(measured):
    assert len(measured) == 11
    assert all(len(row["seconds"]) == 2 and min(row["seconds"]) > 0 for row in measured.values())


def test_the_records_of_the_quick_run_hold_what_reached_the_prompts(measured):
    says = {case: row["says"] for case, row in measured.items()}

    assert says["agent"] == says["agent, other order"] == "200 contexts"
    assert says["agent, trimmed"] == "200 contexts, 200 truncated"
    assert says["contexts"] == says["contexts, other order"] == "2500 contexts"
    assert says["answer"] == "10 contexts"
    assert says["LlamaIndex, contexts"] == "200 contexts"
