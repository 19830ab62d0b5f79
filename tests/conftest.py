"""What tests of several parts share: how Hypothesis runs, OTLP endpoints, and entry points."""

from __future__ import annotations

from importlib.metadata import EntryPoint, EntryPoints

import hypothesis
import pytest
from servers.otlp import OtlpListener

from ragspan import installed

hypothesis.settings.register_profile("ragspan", deadline=None, derandomize=True)  # a slow machine is no wrong answer
hypothesis.settings.load_profile("ragspan")


@pytest.fixture
def make_otlp_listener(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "*")
    made = []

    def make(**options):
        made.append(OtlpListener(**options))
        return made[-1]

    yield make
    for listener in made:
        listener.close()


@pytest.fixture
def otlp_listener(make_otlp_listener):
    return make_otlp_listener()


@pytest.fixture
def register(monkeypatch):
    """Registers entry points of a group for the duration of the test, and no others."""

    def register(group, **entries):
        found = [EntryPoint(name, value, group) for name, value in entries.items()]
        monkeypatch.setattr(installed, "entry_points", EntryPoints(found).select)

    return register
