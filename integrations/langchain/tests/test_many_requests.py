"""What is left after many requests of every kind: nothing."""

import contextlib
import gc
from collections import Counter
from pathlib import Path

import pytest
from rag_programs import QUESTION, chat_model, rag_chain

from ragspan_langchain import RagspanCallbackHandler


class CountingSink:
    """Counts records by their status and lets them go."""

    def __init__(self):
        self.statuses = Counter()

    def submit(self, capture):
        self.statuses[capture.to_record().status] += 1


def fail(answer):
    raise ZeroDivisionError


def ask_in_every_way(config, program, failing):
    program.invoke(QUESTION, config)
    list(program.stream(QUESTION, config))
    with contextlib.closing(program.stream(QUESTION, config)) as chunks:
        next(chunks)
    with contextlib.suppress(ZeroDivisionError):
        failing.invoke(QUESTION, config)


def resident_kilobytes():
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    raise AssertionError("no VmRSS")


@pytest.mark.slow
@pytest.mark.alone  # other tests of the process take memory, too
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads Linux's figures of the process")
def test_twenty_thousand_requests_leave_nothing_open_and_take_no_more_memory():
    sink = CountingSink()
    handler = RagspanCallbackHandler(sink=sink)
    config = {"callbacks": [handler]}
    program, failing = rag_chain(model=chat_model()), rag_chain(model=chat_model()) | fail
    for _ in range(1000):
        ask_in_every_way(config, program, failing)
    gc.collect()
    objects, kilobytes = len(gc.get_objects()), resident_kilobytes()

    for _ in range(4000):
        ask_in_every_way(config, program, failing)
    gc.collect()

    assert handler.open_runs == 0
    assert sink.statuses == {"complete": 10_000, "aborted": 5000, "error": 5000}
    assert len(gc.get_objects()) - objects < 1000
    assert resident_kilobytes() - kilobytes < 4096
