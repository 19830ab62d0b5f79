"""The benchmark of the receiver runs, and counts every trace."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.slow


def test_every_trace_is_read_or_refused(figures_of):
    rows = {row["traces"]: row for row in figures_of("receiving.py", "--rate", 500)}

    assert list(rows) == ["read", "too little memory"]
    assert [row["lost"] for row in rows.values()] == [0, 0]
    assert rows["read"]["refused"] == 0
    assert 0 < rows["too little memory"]["refused"] < rows["too little memory"]["sent"]
