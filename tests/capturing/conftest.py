from __future__ import annotations

import pytest

from ragspan.capturing import answer
from ragspan.testing import RecordingSink
from ragspan.throttled_log import ThrottledLog


@pytest.fixture
def sink():
    return RecordingSink()


@pytest.fixture(autouse=True)
def fresh_log(monkeypatch):
    """A test's lines are logged, whatever others have logged."""
    monkeypatch.setattr(answer, "_log", ThrottledLog())
