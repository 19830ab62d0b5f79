"""The sink in real processes: forks, exits, signals."""

from __future__ import annotations

import os

import pytest
from forked import in_child
from submitted import a_record, stored_ids, stored_records, submit
from waiting import PATIENCE

PRELUDE = """
import logging, os, signal, sys, threading, time
from ragspan import RagRecord
from ragspan_nats import NatsSink

logging.getLogger("ragspan").addHandler(logging.NullHandler())  # what others log, or Python warns of, fails the test

def record(number):
    return RagRecord(question="q", contexts=["c"], response="r", record_id=f"r-{{number}}")

sink = NatsSink("{url}", exit_timeout={exit_timeout})
"""
needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")


def program(broker, text, *, exit_timeout=10.0):
    import textwrap

    return PRELUDE.format(url=broker.url, exit_timeout=exit_timeout) + textwrap.dedent(text)


@needs_fork
def test_the_parents_connection_outlives_its_children(broker, make_sink):
    """Closing what the child inherited would take the parent's socket off the selector they share."""
    sink = make_sink(broker)
    submit(sink, a_record("before"))

    def collect_everything():
        import gc

        before = sink.stats().submitted
        sink.submit(a_record("child"))
        sink.shutdown(PATIENCE)
        gc.collect()
        return [before, sink.stats().published]

    assert in_child(collect_everything) == [0, 1]
    submit(sink, a_record("after"))
    assert sink.stats().errors == {}
    assert stored_ids(broker) == ["before", "child", "after"]


@pytest.mark.slow
def test_what_waits_at_the_end_of_a_process_is_published(broker, run_script):
    run_script(program(broker, "for number in range(500): sink.submit(record(number))"))
    assert set(stored_ids(broker)) == {f"r-{number}" for number in range(500)}


@pytest.mark.slow
def test_what_was_acknowledged_is_there_although_the_process_was_killed(broker, start_script):
    process = start_script(
        program(
            broker,
            """
            for number in range(100000):
                sink.submit(record(number))
                if number % 10 == 0:
                    print(sink.stats().published, flush=True)
                    time.sleep(0.001)
            """,
        )
    )
    published = 0
    while published < 100:
        published = int(process.stdout.readline())
    process.kill()
    process.wait()

    stored = [record.record_id for record in stored_records(broker)]
    assert len(set(stored)) == len(stored) >= published
