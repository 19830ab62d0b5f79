"""The benchmark of the fleet runs, has every record scored once and measures something."""

from __future__ import annotations

import pytest
from brokers import server_program

pytestmark = [pytest.mark.slow, pytest.mark.alone]


@pytest.fixture(scope="module")
def measured(figures_of):
    """The figures of a quick run."""
    server_program()
    return figures_of("fleet.py")


def test_one_worker_and_two_are_measured_and_what_one_can_do_at_most(measured):
    runs = measured["runs"]

    assert [(run["judge"], run["workers"]) for run in runs["scaling"]] == [("endpoint", 1), ("endpoint", 2)]
    assert [(run["judge"], run["latency"]) for run in runs["ceiling"]] == [("endpoint", 0.0), ("overlap", 0.0)]


def test_a_ratio_is_that_of_two_rates_of_one_round(measured):
    one, two = measured["runs"]["scaling"]

    assert measured["ratios"] == {"2": pytest.approx([two["per_second"] / one["per_second"]] * 3)}


def test_no_fleet_is_faster_than_its_judge_allows(measured):
    """The rate is that of what leaves the stream, which happens in batches."""
    for run in measured["runs"]["scaling"]:
        limit = run["workers"] * measured["concurrency"] / (2 * measured["latency_s"])
        assert 0 < run["per_second"] < 1.25 * limit


def test_processor_time_is_told_apart(measured):
    for run in [run for part in measured["runs"].values() for run in part]:
        assert run["worker_cpu"] > 0
        assert run["worker_cpu"] * run["per_second"] < 1.1 * measured["machine"]["processors"]
        assert 0 < run["machine_share"] <= 1.01
    scaled = measured["runs"]["scaling"]
    assert min(run["judge_cpu"] for run in scaled) > 0
    assert max(run["judge_share"] for run in scaled) < 0.8, "the endpoint would be what is measured"


def test_a_part_can_be_left_out(figures_of):
    server_program()
    figures = figures_of("fleet.py", "--part", "scaling", "--workers", 1)

    assert (list(figures["runs"]), figures["ratios"]) == (["scaling"], {})
