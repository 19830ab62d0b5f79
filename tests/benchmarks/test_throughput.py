"""The benchmark of throughput runs, has everything judged and measures something."""

from __future__ import annotations

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.alone]


@pytest.fixture(scope="module")
def measured(figures_of):
    """The figures of a quick run."""
    return figures_of("throughput.py")


def test_the_bare_client_and_ragspan_are_measured(measured):
    assert [result["contender"] for result in measured["results"]] == ["bare-client", "ragspan", "ragspan-four-metrics"]
    assert measured["left_out"] == []


def test_every_answer_gets_a_verdict(measured):
    assert all(result["judged"] == result["answers"] > 0 for result in measured["results"])


def test_the_limit_follows_from_the_latency_and_the_longest_metric(measured):
    concurrency, latency = 16, measured["latency_s"]

    limits = {result["contender"]: result["limit"] for result in measured["results"]}

    assert limits == pytest.approx(
        {
            "bare-client": concurrency / latency,
            "ragspan": concurrency / latency,
            "ragspan-four-metrics": concurrency / (2 * latency),
        }
    )


def test_nobody_is_faster_than_the_limit(measured):
    for result in measured["results"]:
        assert 0 < result["per_second"] <= result["limit"]
        assert result["share"] == pytest.approx(result["per_second"] / result["limit"])
        assert result["cpu_ms"] > 0


def test_memory_stays_bounded_while_the_judge_has_stopped(measured):
    memory = measured["memory"]

    assert memory["submitted_bytes"] == 10 * memory["queue_bytes"]
    assert memory["queued"] > 0 < memory["dropped"]
    assert memory["after"] - memory["before"] <= memory["queue_bytes"] + memory["base"]
