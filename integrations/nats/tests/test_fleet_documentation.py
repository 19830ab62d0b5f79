"""What docs/fleet.md says is complete."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

from ragspan_nats.worker.delivery import Reason

DOCUMENTATION = (Path(__file__).parents[3] / "docs" / "fleet.md").read_text(encoding="utf-8")


def test_every_reason_is_documented():
    assert [reason for reason in get_args(Reason) if f"`{reason}`" not in DOCUMENTATION] == []
