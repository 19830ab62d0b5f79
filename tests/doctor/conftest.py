from __future__ import annotations

import os
import socket

import pytest


@pytest.fixture(autouse=True)
def a_plain_environment(monkeypatch):
    """Nothing that a developer or a CI has set changes what the doctor finds."""
    for name in list(os.environ):
        if name.startswith(("OTEL_", "RAGSPAN_", "OPENAI_")) or name.lower().endswith(("_proxy", "_ca_bundle")):
            monkeypatch.delenv(name)


@pytest.fixture
def set_variables(monkeypatch):
    def set_all(**variables):
        for name, value in variables.items():
            monkeypatch.setenv(name, value)

    return set_all


@pytest.fixture
def refused_port():
    """A port that is taken, so that nobody else gets it, and where nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield taken.getsockname()[1]


@pytest.fixture
def silent_port():
    """A port that takes connections and never says anything."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(64)
        yield listening.getsockname()[1]
