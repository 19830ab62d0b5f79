"""The documentation of attributes is complete."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from ragspan.engine import DropReason
from ragspan.telemetry import semconv

DOCUMENTATION = (Path(__file__).parents[2] / "docs" / "attributes.md").read_text(encoding="utf-8")
CONSTANTS = sorted({value for name, value in vars(semconv).items() if name.isupper() and isinstance(value, str)})


@pytest.mark.parametrize("name", [name for name in CONSTANTS if "." in name and "{}" not in name])
def test_every_name_is_documented(name):
    ends = ["<metric>`", "<metric>.<name>`", "<name>`"] if name.endswith(".") else ["`", ".<i>."]
    assert any(f"`{name}{end}" in DOCUMENTATION for end in ends)


def test_every_reason_for_a_drop_is_documented():
    missing = [reason for reason in get_args(DropReason) if f"`{reason}`" not in DOCUMENTATION]

    assert missing == []
