"""The files that read ragspan's metrics, and Prometheus' tool that checks them."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

GRAFANA = Path(__file__).parents[2] / "docs" / "grafana"


@pytest.fixture(scope="session")
def promtool():
    path = shutil.which("promtool")
    missing = "promtool is not installed; on Debian and Ubuntu: apt-get install prometheus"
    if path is None and os.environ.get("CI") == "true":
        pytest.fail(missing)
    if path is None:
        pytest.skip(missing)
    return path


@pytest.fixture
def dashboard():
    return json.loads((GRAFANA / "ragspan.json").read_text(encoding="utf-8"))
