"""The documentation of attributes is complete."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from ragspan.engine import DropReason
from ragspan.telemetry import semconv

DOCUMENTATION = (Path(__file__).parents[2] / "docs" / "attributes.md").read_text(encoding="utf-8")
CONSTANTS = sorted({value for name, value in vars(semconv).items() if name.isupper() and isinstance(value, str)})
PER_METRIC = [
    semconv.score_attribute,
    semconv.label_attribute,
    semconv.explanation_attribute,
    semconv.not_applicable_attribute,
    semconv.error_attribute,
    semconv.fallback_attribute,
]


@pytest.mark.parametrize("name", [name for name in CONSTANTS if "." in name])
def test_every_name_is_documented(name):
    assert f"`{name}`" in DOCUMENTATION


@pytest.mark.parametrize("of_metric", PER_METRIC)
def test_every_name_with_a_metric_in_it_is_documented(of_metric):
    assert f"`{of_metric('<metric>')}`" in DOCUMENTATION


def test_every_reason_for_a_drop_is_documented():
    missing = [reason for reason in get_args(DropReason) if f"`{reason}`" not in DOCUMENTATION]

    assert missing == []
