"""The benchmark of the embedded judge runs, takes turns with another checkout, and measures something."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def measured(figures_of, tmp_path_factory):
    """What the benchmark writes, with this checkout as the other one as well."""
    other = tmp_path_factory.mktemp("checkouts") / "other"
    other.symlink_to(ROOT)
    return figures_of("embedded_judge.py", "--against", other)


@pytest.mark.slow
def test_both_checkouts_score_all_kinds_of_traffic_everywhere(measured):
    cases = {(result["checkout"], result["place"], result["traffic"]) for result in measured["results"]}

    assert cases == {
        (checkout, place, traffic)
        for checkout in ("this checkout", "other")
        for place in ("alone", "in an engine")
        for traffic in ("all different", "repeated")
    }
    assert all(rate > 0 for result in measured["results"] for rate in result["rates"])
