"""The benchmark of long requests runs and measures every kind of request."""

from __future__ import annotations

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.alone]


@pytest.fixture(scope="module")
def measured(figures_of):
    """The rows of a quick run by the name of the request."""
    return {row["case"]: row for row in figures_of("long_requests.py")}


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
