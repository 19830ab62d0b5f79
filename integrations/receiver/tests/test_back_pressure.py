"""What cannot be handed on is not taken, and what was taken is handed on or counted."""

from __future__ import annotations

import os
import threading
import time

import pytest
from waiting import until

from ragspan.engine import EngineStats
from ragspan_receiver.receiver import Receiver
from ragspan_receiver.spans import RefusedError, batch_of
from ragspan_receiver.traces import BufferLimits


class SmallSink:
    """Has room for a few records, and keeps in mind whether one came that had none."""

    def __init__(self, room):
        self.room = room
        self.records = []
        self.pushed_out = 0

    def has_room(self, size):
        assert size > 0
        return len(self.records) < self.room

    def submit(self, capture):
        self.pushed_out += len(self.records) >= self.room
        self.records.append(capture.to_record())

    def stats(self):
        dropped = {"queue_full": self.pushed_out} if self.pushed_out else {}
        return EngineStats(submitted=len(self.records), queued=len(self.records), dropped=dropped)


@pytest.fixture
def sink():
    return SmallSink(room=3)


@pytest.fixture
def reading(sink, clock):
    """A receiver that reads; its clock stands."""
    made = Receiver(sink, limits=BufferLimits(quiet=1), clock=clock)
    thread = threading.Thread(target=made.read_until_stopped)
    thread.start()
    yield made
    made.stop()
    thread.join(60)


@pytest.fixture
def answers(answer, request_with):
    """The spans of a request with so many answers."""
    return lambda number: batch_of(
        request_with(*(answer(os.urandom(16)) for _ in range(number))).SerializeToString(), most=2**20
    )


def test_the_sink_gets_no_more_than_it_has_room_for(reading, sink, clock, answers):
    reading.take(answers(10))
    clock.now += 2

    until(lambda: len(sink.records) == 3)
    sink.room = 7
    until(lambda: len(sink.records) == 7)
    sink.room = 100
    until(lambda: len(sink.records) == 10)

    assert sink.pushed_out == 0
    until(lambda: reading.traces.size == 0)


def test_while_what_has_ended_waits_for_the_sink_nothing_is_taken(reading, sink, clock, answers):
    reading.take(answers(10))
    clock.now += 2
    until(lambda: len(sink.records) == 3)
    assert reading.is_ready

    clock.now += 5
    with pytest.raises(RefusedError, match=r"^the receiver has no room for more$"):
        reading.take(answers(1))

    assert not reading.is_ready
    sink.room = 100
    until(lambda: reading.is_ready)
    reading.take(answers(1))
    assert reading.traces.counts["requests.refused"] == 1


def test_at_the_end_everything_is_handed_on(sink, answers):
    receiver = Receiver(sink)
    receiver.take(answers(3))
    receiver.stop()
    with pytest.raises(RefusedError, match=r"^the receiver stops$"):
        receiver.take(answers(1))

    receiver.finish(60)

    assert len(sink.records) == receiver.traces.counts["records"] == 3
    assert receiver.traces.size == receiver.traces.counts["traces.abandoned"] == 0


def test_the_end_takes_no_longer_than_it_may_and_what_is_left_is_counted(sink, answers, caplog):
    receiver = Receiver(sink)
    receiver.take(answers(10))
    receiver.stop()
    began = time.monotonic()

    receiver.finish(0.2)

    assert time.monotonic() - began < 30
    counts = {"records": 3, "traces.abandoned": 7, "traces.ended": 10, "traces.of_interest": 10, "spans.accepted": 10}
    answers = {"waiting": 3, "finished": 0, "dropped": {}}
    assert {name: number for name, number in receiver.figures().items() if number} == counts | {
        "requests.accepted": 1,
        "answers": answers,
    }
    assert "7 traces not read when the time to stop was over" in caplog.messages


def test_what_is_lost_is_counted_and_told_in_the_log(sink, answer, request_with, caplog):
    large, cut_off, left_out = (bytes([number]) * 16 for number in range(1, 4))
    receiver = Receiver(sink, limits=BufferLimits(max_trace_spans=1), is_sampled=lambda trace_id: trace_id != left_out)
    sink.pushed_out = 2
    spans = [answer(large), answer(large), answer(b"none"), answer(left_out), answer(cut_off, parent=b"a parent")]
    for own, lost in ((spans, 3), ([answer(large)], 0)):
        batch = batch_of(request_with(*own).SerializeToString(), most=2**20)
        assert receiver.take(batch).partial_success.rejected_spans == lost
    receiver.finish(60)

    assert receiver.traces.counts["spans.not_sampled"] == 1
    assert caplog.messages == [
        "1 trace so far had more spans or bytes than a trace may have: not scored",
        "1 trace so far began before this process or had not ended at its end: not scored",
        "1 span so far had no valid id",
        "1 span so far came after the end of the trace; --quiet and --deadline say when that is",
        "2 answers so far dropped after reading; /healthz shows the reasons",
    ]
