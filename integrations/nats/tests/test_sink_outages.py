"""The sink, with a broker that is away, hangs, or comes back another one."""

from __future__ import annotations

import threading
import time

import pytest
from submitted import FakeCapture, a_record, records, stored_ids, submit
from waiting import PATIENCE, until


@pytest.fixture
def broker(own_broker):
    return own_broker


def ids(count):
    return {f"r-{number}" for number in range(count)}


def submit_until(stop, sink, *, pause=0.002):
    """Submit as an application does, from a thread of its own, until it is told to stop; how many there were."""
    submitted = []

    def submit():
        while not stop.is_set():
            sink.submit(a_record(f"r-{len(submitted)}"))
            submitted.append(None)
            time.sleep(pause)

    thread = threading.Thread(target=submit)
    thread.start()
    return thread, submitted


def wait_for_more(count, more, *, what):
    goal = count() + more
    until(lambda: count() >= goal, what=what)


@pytest.mark.slow
@pytest.mark.parametrize("end", ["stop", "kill"])
def test_a_broker_that_ends_in_mid_work_and_comes_back_costs_nothing(broker, make_sink, end):
    sink = make_sink(broker)
    stop = threading.Event()
    thread, submitted = submit_until(stop, sink)
    for _ in range(2):
        wait_for_more(lambda: sink.stats().finished, 50, what="records to be published")
        getattr(broker, end)()
        wait_for_more(lambda: len(submitted), 100, what="the application to go on")
        broker.start()
    stop.set()
    thread.join()

    assert sink.flush(PATIENCE)
    stored = stored_ids(broker)
    assert len(stored) == len(set(stored))
    assert set(stored) == ids(len(submitted))
    assert sink.stats().finished == len(submitted)
    assert sink.stats().dropped == {}


def test_records_wait_for_a_broker_that_is_not_there_yet_and_nothing_is_computed_meanwhile(make_broker, make_sink):
    broker, made = make_broker(), []
    sink = make_sink(broker)
    for record in records(20):
        sink.submit(FakeCapture(lambda record=record: made.append(None) or record))
    assert not sink.flush(0.3)
    assert (made, sink.stats().finished) == ([], 0)

    broker.start()
    assert sink.flush(PATIENCE)
    assert stored_ids(broker) == [f"r-{number}" for number in range(20)]
    assert sink.stats().dropped == {}


def test_a_stream_that_is_deleted_under_the_sink_is_made_again(broker, make_sink):
    sink = make_sink(broker)
    submit(sink, a_record("before"))

    broker.drop_stream("ragspan")
    submit(sink, *records(100))
    assert set(stored_ids(broker)) == ids(100)
    assert sink.stats().dropped == {}
