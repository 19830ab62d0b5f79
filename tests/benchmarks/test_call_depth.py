"""The count of functions that one record enters runs, and finds all packages that it goes through."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.slow


def test_a_record_enters_functions_of_the_engine_and_of_its_emitter(figures_of):
    figures = figures_of("call_depth.py")

    assert {"engine", "telemetry"} <= set(figures["packages"])
    assert figures["functions"] == sum(package["functions"] for package in figures["packages"].values())
