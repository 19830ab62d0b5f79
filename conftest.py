"""What tests of all packages share."""

from __future__ import annotations

import gc
import sys

import pytest
from servers.chat import FakeOpenAI

pytest.register_assert_rewrite("li_programs")


def pytest_configure():
    """What is made until all tests are known stays until the end: the collector need not look at it, then or ever again."""
    gc.disable()


def pytest_collection_finish():
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True)
def nothing_stays_configured():
    """What a test configures captures no answer of the next one."""
    yield
    process = sys.modules.get("ragspan.process")
    if process is not None and process.in_use.configured is not None:
        process.in_use.configured.shutdown(timeout=5)


@pytest.fixture
def fake_openai(monkeypatch):
    """A chat endpoint; a request that the test's script does not provide for fails the test."""
    monkeypatch.setenv("NO_PROXY", "*")
    with FakeOpenAI() as endpoint:
        yield endpoint
    assert not endpoint.troubles


class ManualClock:
    """A clock that stands still until a test moves it."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now

    def advance(self, seconds):
        self.now += seconds


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def telemetry():
    from fakes import InMemoryTelemetry

    return InMemoryTelemetry()


@pytest.fixture
def tracer(telemetry):
    """The application's own."""
    return telemetry.tracer_provider.get_tracer("application")


@pytest.fixture
def no_engine_yet():
    """The test starts as a process does, without a default engine; one that it makes is shut down."""
    from ragspan.defaults import set_default_engine

    before = set_default_engine(None)
    yield
    made = set_default_engine(before)
    if made is not None:
        made.shutdown(timeout=5)


@pytest.fixture
def left_in_cycles():
    """Runs a program, and says of which classes of ours there is garbage that waits for the collector."""

    def run(program):
        gc.collect()
        gc.disable()
        try:
            program()
            gc.set_debug(gc.DEBUG_SAVEALL)
            gc.collect()
            kinds = {f"{type(item).__module__}.{type(item).__qualname__}" for item in gc.garbage}
        finally:
            gc.set_debug(0)
            gc.garbage.clear()
            gc.enable()
        return sorted(kind for kind in kinds if kind.startswith(("ragspan", "_asyncio.Task")))

    return run
