"""What is left after many requests of every kind: nothing."""

from __future__ import annotations

import contextlib
import gc
import threading
from collections import Counter
from pathlib import Path

import pytest
from li_agents import agent, ask, retriever_tool
from li_model import calls
from li_programs import ANSWER, QUESTION, drained, engine, engine_over
from llama_index.core import Settings
from llama_index.core.retrievers import BaseRetriever

from ragspan_llama_index import RagspanCallbackHandler


class CountingSink:
    """Counts records by their status and lets them go."""

    def __init__(self):
        self.statuses = Counter()
        self._lock = threading.Lock()

    def submit(self, capture):
        with self._lock:
            self.statuses[capture.to_record().status] += 1


@pytest.fixture
def sink():
    return CountingSink()


@pytest.fixture
def attach(sink):
    """Attaches a handler when the test wants one."""
    attached = []

    def make():
        attached.append(RagspanCallbackHandler(sink=sink))
        return attached[-1]

    yield make
    for handler in attached:
        handler.detach()


@pytest.fixture
def handler(attach):
    return attach()


class Unreachable(BaseRetriever):
    """The database is down."""

    def _retrieve(self, query_bundle):
        raise ConnectionError("no database")


class Programs:
    """One program of each kind, used over and over."""

    def __init__(self):
        self.plain = engine()
        self.streaming = engine(streaming=True, response_mode="tree_summarize")
        self.failing = engine_over(Unreachable())
        self.agent = agent(retriever_tool())

    def ask(self):
        self.plain.query(QUESTION)
        list(self.streaming.query(QUESTION).response_gen)
        next(self.streaming.query(QUESTION).response_gen)
        self.streaming.query(QUESTION)
        with contextlib.suppress(ConnectionError):
            self.failing.query(QUESTION)
        Settings.llm.prompts.clear()

    async def ask_asynchronously(self):
        await self.plain.aquery(QUESTION)
        await drained((await self.streaming.aquery(QUESTION)).response_gen)
        Settings.llm.prompts.clear()

    async def run_agent(self):
        Settings.llm.says(calls("look_up", input="cello"), ANSWER)
        await ask(self.agent, QUESTION)


def growth(ask, times):
    """How many objects more there are after asking so many times; the first times warm caches up."""
    for _ in range(times // 5):
        ask()
    gc.collect()
    objects = len(gc.get_objects())
    for _ in range(times):
        ask()
    gc.collect()
    return len(gc.get_objects()) - objects


def resident_kilobytes():
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    raise AssertionError("no VmRSS")


@pytest.mark.alone  # it measures the process's memory, which parallel test runs disturb
@pytest.mark.slow
@pytest.mark.usefixtures("expected_failure")
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads Linux's figures of the process")
def test_thousands_of_requests_leave_nothing_open_and_take_no_more_memory(attach, sink):
    """The framework keeps a list for each request; no more is kept with the handler."""
    without = growth(Programs().ask, 400)
    handler = attach()
    programs = Programs()
    for _ in range(50):
        programs.ask()
    kilobytes = resident_kilobytes()
    with_handler = growth(programs.ask, 400)

    assert handler.open_spans == 0
    assert sink.statuses == {"complete": 1060, "aborted": 1060, "error": 530}
    assert with_handler - without < 400  # less than one object a round
    assert resident_kilobytes() - kilobytes < 4096
