"""The benchmark of the hot path runs and measures something, whether or not there are peers to compare with."""

from __future__ import annotations

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.alone]

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
def measured(figures_of):
    """The figures of a quick run."""
    return figures_of("hot_path.py")


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


def test_the_callbacks_of_a_query_are_measured_one_by_one(run_benchmark):
    done = run_benchmark("callbacks.py", "--queries", 3)

    rows = [line.split()[0] for line in done.stdout.splitlines()]
    assert rows.count("span_enter") == rows.count("span_exit") == 14
