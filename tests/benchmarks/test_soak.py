"""The soak runs, and every kind of fault happens in it."""

from __future__ import annotations

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.alone]


@pytest.fixture(scope="module")
def soaked(figures_of):
    """What a quick run saw."""
    return figures_of("soak.py")


def test_everything_that_has_to_hold_holds(soaked):
    assert soaked["checks"]
    assert all(soaked["checks"].values())


def test_the_counts_were_looked_at_all_the_time(soaked):
    assert soaked["looks"] > 100
    assert soaked["stats"]["submitted"] == soaked["answers"] > 400
    assert soaked["spans_received"] > 0


def test_chains_engines_and_plain_code_took_part(soaked):
    assert {"invoke", "query", "capture"} <= soaked["runs"].keys()
    assert len(soaked["runs"]) > 10


def test_forked_processes_answered_as_well(soaked):
    assert sum(soaked["forks"].values()) == soaked["faults"]["fork"] > 0


def test_what_was_to_go_wrong_did(soaked):
    assert soaked["faults"].keys() >= {"burst", "endpoint of spans down", "endpoint of spans up", "helper killed"}
    assert soaked["stats"]["dropped"]["queue_full"] > 0
    assert soaked["stats"]["errors"]["metric"] > 0
    assert soaked["judge_fates"].keys() >= {"answered", "429", "500", "cut"}


def test_a_sample_shows_where_the_process_stands(soaked):
    sample = soaked["samples"][-1]

    assert sample["rss_mib"] > 10
    assert sample["threads"] > 5
    assert sample["submitted"] == sample["queued"] + sample["in_flight"] + sample["finished"] + sample["dropped"]
