"""The benchmark of the hot path runs and measures something, whether or not there are peers to compare with."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.alone]

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "hot_path.py"
CONTESTANTS = {
    "ragspan",
    "ragspan, with its engine",
    "ragspan, helper exports",
    "OpenInference",
    "Langfuse",
    "MLflow",
    "Opik",
    "DeepEval",
}


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """The figures of a quick run."""
    file = tmp_path_factory.mktemp("hot_path") / "figures.json"
    done = subprocess.run(
        [sys.executable, BENCHMARK, "--quick", "--json", file], capture_output=True, text=True, check=False, timeout=240
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(file.read_text(encoding="utf-8"))


def test_every_program_of_both_frameworks_takes_time(measured):
    programs = measured["programs"]

    assert {program["framework"] for program in programs} == {"LangChain", "LlamaIndex"}
    assert {"invoke", "astream", "query", "stream_chat"} <= {program["scenario"] for program in programs}
    assert all(program["bare_us"] > 0 for program in programs)


def test_each_contestant_is_measured_or_left_out_with_a_reason(measured):
    costs = {cost["contestant"] for cost in measured["peers"]}
    left_out = {absent["contestant"]: absent["reason"] for absent in measured["left_out"]}

    assert costs | left_out.keys() == CONTESTANTS
    assert not costs & left_out.keys()
    assert all(left_out.values())


def test_ragspan_and_what_is_installed_with_the_tests_are_measured(measured):
    costs = {cost["contestant"]: cost for cost in measured["peers"]}

    assert costs.keys() >= {"ragspan", "ragspan, with its engine", "ragspan, helper exports", "OpenInference"}
    assert all(cost["bare_us"] > 0 for cost in costs.values())


def test_whoever_exports_has_exported(measured):
    exported = {cost["contestant"]: cost["exported_bytes"] for cost in measured["peers"]}

    assert exported.pop("ragspan") == 0
    assert all(size > 0 for size in exported.values())


def test_the_callbacks_of_a_query_are_measured_one_by_one():
    done = subprocess.run(
        [sys.executable, BENCHMARK.with_name("callbacks.py"), "--queries", "3"],
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    rows = [line.split()[0] for line in done.stdout.splitlines()]
    assert rows.count("span_enter") == rows.count("span_exit") == 14
