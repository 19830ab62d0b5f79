"""What tests of all packages share."""

from __future__ import annotations

import gc
import os
import ssl
import sys
from itertools import accumulate

import pytest
from servers.chat import FakeOpenAI

pytest.register_assert_rewrite("li_programs", "whole_records")


def pytest_configure():
    """What is made until all tests are known stays until the end: the collector need not look at it, then or ever again."""
    gc.disable()


def pytest_sessionstart(session):
    """Each client would read the certificates of all authorities, which takes longer than most tests: now it looks for one when it needs it."""
    os.environ.pop("SSL_CERT_FILE", None)
    os.environ["SSL_CERT_DIR"] = ssl.get_default_verify_paths().capath or str(session.config.rootpath)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node):
    node.workerinput["dist"] = node.config.option.dist


MINE = pytest.StashKey()
LONGER = {"docs": 8, "doctor": 5, "evaluate": 3, "langchain": 2, "llama-index": 2, "nats": 3, "tools": 3}
LONGER |= {"benchmarks": 0, "environments": 0}  # which are slow, and run elsewhere
"""How many times longer the tests of a folder take than others of their size: they wait for servers and processes."""


def pytest_ignore_collect(collection_path, config):
    """With `--dist each` a worker collects its own part of the files alone, which spares it the imports of all others."""
    worker = getattr(config, "workerinput", {})
    if worker.get("dist") != "each":
        return None
    if MINE not in config.stash:
        config.stash[MINE] = part_of(config, int(worker["workerid"].removeprefix("gw")), worker["workercount"])
    return None if collection_path in config.stash[MINE] else True


def part_of(config, number, count):
    """The files of one worker and the folders above them: neighbours in the tree, which import the same, and as much time for each."""
    files = sorted(path for root in config.getini("testpaths") for path in (config.rootpath / root).rglob("test_*.py"))
    folders = [path.relative_to(config.rootpath).parts for path in files]
    longer = [next((LONGER[name] for name in names if name in LONGER), 1) for names in folders]
    ends = list(accumulate(path.stat().st_size * times for path, times in zip(files, longer, strict=True)))
    part = [path for path, end in zip(files, ends, strict=True) if (end - 1) * count // ends[-1] == number]
    return {*part, *(parent for path in part for parent in path.parents)}


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
