"""What cannot be handed on is not taken, and what was taken is handed on or counted."""

from __future__ import annotations

import os
import threading
import time
from types import SimpleNamespace

import pytest
from http_senders import post

from ragspan.engine import EngineStats
from ragspan_receiver import pace
from ragspan_receiver import receiver as receiver_module
from ragspan_receiver.bodies import RefusedError
from ragspan_receiver.receiver import Receiver
from ragspan_receiver.spans import batch_of
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


def until(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


@pytest.fixture
def sink():
    return SmallSink(room=3)


@pytest.fixture
def reading(sink, clock):
    """A receiver that reads; its clock stands."""
    made = Receiver(sink, limits=BufferLimits(quiet=1), clock=clock)
    thread = threading.Thread(target=made._read_until_stopped)
    thread.start()
    yield made
    made.stop()
    thread.join(60)


@pytest.fixture
def answers(answer, request_with):
    """The spans of a request with so many answers."""
    return lambda number: batch_of(request_with(*(answer(os.urandom(16)) for _ in range(number))).SerializeToString())


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
    with pytest.raises(RefusedError, match="wait to be handed on"):
        reading.take(answers(1))

    assert not reading.is_ready
    sink.room = 100
    until(lambda: reading.is_ready)
    reading.take(answers(1))
    assert reading.counts["requests.refused"] == 1


@pytest.fixture
def slow(sink, clock, monkeypatch):
    """A receiver that needs a tenth of a second for a trace, as it believes, and has ten seconds to stop."""
    monkeypatch.setattr(pace, "_FIRST", 0.1)
    return Receiver(sink, limits=BufferLimits(quiet=600), clock=clock, end=10)


def test_no_more_is_taken_than_could_be_handed_on_if_the_process_ended_now(slow, answers):
    slow.take(answers(34))
    assert slow.is_ready
    slow.take(answers(1))  # a third of the ten seconds

    assert not slow.is_ready


def test_a_request_counts_with_all_its_traces_before_it_is_taken(slow, answers):
    slow.take(answers(5))
    with pytest.raises(RefusedError, match="wait to be handed on"):
        slow.take(answers(31))

    assert slow.counts["spans.accepted"] == 5
    slow.take(answers(30))


def test_a_request_that_is_larger_than_all_the_room_is_taken_when_there_is_nothing_else_to_do(slow, answers):
    slow.take(answers(100))

    assert slow.counts["spans.accepted"] == 100
    assert not slow.is_ready


def test_of_a_request_what_will_not_be_read_takes_no_room(sink, clock, slow, span, answers, request_with):
    parts = {"openinference.span.kind": "LLM"}
    in_mid_trace = [span(os.urandom(16), parent=os.urandom(8), attributes=parts) for _ in range(100)]
    of_the_web = [span(os.urandom(16), attributes={"http.route": "/"}) for _ in range(100)]
    others = batch_of(request_with(*in_mid_trace, *of_the_web).SerializeToString())
    slow.take(answers(34))
    slow.take(others)
    assert slow.is_ready

    unsampled = Receiver(sink, clock=clock, is_sampled=lambda _: False)
    assert (slow.whole_in(answers(7)), unsampled.whole_in(answers(7))) == (7, 0)


async def test_whose_traces_are_whole_is_found_out_once_for_a_request(serving, answer, request_with):
    asked = []
    request = request_with(*(answer(os.urandom(16)) for _ in range(5)))
    async with serving(BufferLimits(), is_sampled=lambda trace_id: not asked.append(trace_id)) as served:
        response = await post(served, request.SerializeToString())

    assert response.status_code == 200
    assert len(asked) == 10  # of each trace: whether it takes room, and whether it is kept


def test_after_it_was_stopped_nothing_is_taken(sink, answers):
    receiver = Receiver(sink)
    receiver.stop()
    with pytest.raises(RefusedError, match="stops"):
        receiver.take(answers(1))

    assert receiver.counts["spans.accepted"] == 0


def test_at_the_end_everything_is_handed_on(sink, answers):
    receiver = Receiver(sink)
    receiver.take(answers(3))
    receiver.stop()

    receiver.finish(60)

    assert len(sink.records) == receiver.counts["records"] == 3
    assert receiver.traces.size == receiver.counts["traces.abandoned"] == 0


def test_the_end_takes_no_longer_than_it_may_and_what_is_left_is_counted(sink, answers, caplog):
    receiver = Receiver(sink)
    receiver.take(answers(10))
    receiver.stop()
    began = time.monotonic()

    receiver.finish(0.2)

    assert time.monotonic() - began < 30
    assert (len(sink.records), receiver.counts["traces.abandoned"]) == (3, 7)
    assert receiver.traces.size == 0
    assert "7 traces not read when the time to stop was over" in caplog.text


def test_what_the_sink_drops_is_shown_with_its_reason(sink, clock, caplog):
    receiver = Receiver(sink, clock=clock)
    sink.records, sink.pushed_out = [None] * 5, 2

    assert receiver.figures()["answers"] == {"waiting": 5, "finished": 0, "dropped": {"queue_full": 2}}
    receiver._tell()
    assert "2 answers so far dropped" in caplog.text


def test_the_log_tells_true_numbers_once_a_minute_and_at_the_end(sink, clock, caplog):
    receiver = Receiver(sink, clock=clock)

    def told(number, *, last=False):
        caplog.clear()
        receiver.traces.count("spans.late", number)
        receiver._tell(last=last)
        return [line.split()[0] for line in caplog.messages]

    assert told(5) == ["5"]
    clock.now += 59
    assert told(100) == []
    clock.now += 1
    assert told(0) == ["105"]  # although nothing has been added since the line that was left out
    assert told(2, last=True) == ["107"]
    assert told(0, last=True) == []


def test_a_sink_that_does_not_say_whether_it_has_room_gets_everything(clock, answers):
    class PlainSink:
        def __init__(self):
            self.records = []

        def submit(self, capture):
            self.records.append(capture)

    sink = PlainSink()
    receiver = Receiver(sink, clock=clock)
    receiver.take(answers(10))
    receiver.finish(60)

    assert len(sink.records) == 10
    assert "answers" not in receiver.figures()


def test_a_request_that_is_being_taken_when_the_process_ends_is_handed_on_as_a_whole(answers):
    sink = SmallSink(room=1000)
    is_half, may_go_on = threading.Event(), threading.Event()
    receiver = Receiver(sink)
    add = receiver.traces.add

    def slowly(trace_id, spans):
        added = add(trace_id, spans)
        is_half.set()
        assert may_go_on.wait(60)
        return added

    receiver.traces.add = slowly
    taking = threading.Thread(target=receiver.take, args=(answers(10),))
    taking.start()
    assert is_half.wait(60)
    receiver.stop()
    finishing = threading.Thread(target=receiver.finish, args=(60,))
    finishing.start()
    finishing.join(0.2)
    assert finishing.is_alive(), "it waits for the rest of the request"
    may_go_on.set()
    taking.join(60)
    finishing.join(60)

    assert len(sink.records) == 10


def test_traces_count_from_when_they_are_taken_until_they_were_read(slow, clock, answers):
    slow.take(answers(35))
    clock.now += 601

    ended = slow.traces.ended()
    assert not slow.is_ready, "that they have ended makes no room"
    slow.traces.release(ended[0])
    assert slow.is_ready


def test_traces_whose_root_never_came_count_once_they_have_ended(sink, clock, span, request_with):
    receiver = Receiver(sink, limits=BufferLimits(deadline=30), clock=clock)
    parts = {"openinference.span.kind": "LLM"}
    receiver.take(batch_of(request_with(span(b"1" * 16, parent=b"2" * 8, attributes=parts)).SerializeToString()))
    assert receiver.traces.to_read == 0
    clock.now += 31

    (ended,) = receiver.traces.ended()

    assert receiver.traces.to_read == 1
    receiver.traces.release(ended)
    assert receiver.traces.to_read == 0


class FleetSink(SmallSink):
    """Has so many answers to hand on, and was done with so many."""

    waiting = finished = 0

    def __init__(self):
        super().__init__(room=1000)

    def stats(self):
        submitted = self.waiting + self.finished
        return EngineStats(submitted=submitted, queued=self.waiting, finished=self.finished)


def test_what_a_fleets_sink_has_not_handed_on_counts_as_well(clock, monkeypatch):
    monkeypatch.setattr(pace, "_FIRST", 0.1)
    sink = FleetSink()
    receiver = Receiver(sink, limits=BufferLimits(quiet=600), clock=clock, end=10, is_for_fleet=True)
    sink.waiting = 34
    assert receiver.is_ready
    sink.waiting = 35  # a third of the ten seconds
    assert not receiver.is_ready
    assert Receiver(sink, clock=clock, end=10).is_ready, "an engine counts what it does not score"


class SinkThatWaits(FleetSink):
    """A fleet's, which is done with nothing."""

    def submit(self, capture):
        super().submit(capture)
        self.waiting += 1


@pytest.mark.parametrize(("pace_of_it", "read"), [(0.001, 819), (0.1, 650)])
def test_at_the_end_reading_goes_on_until_a_fleets_sink_needs_the_rest_of_the_time(
    answers, monkeypatch, pace_of_it, read
):
    class Hourglass:
        """A hundredth of a second passes with each answer that was handed on."""

        def __init__(self, timeout):
            self.timeout = timeout

        @property
        def remaining(self):
            return self.timeout - len(sink.records) / 100

    sink = SinkThatWaits()
    receiver = Receiver(sink, is_for_fleet=True)
    receiver.take(answers(1000))
    receiver._pace = SimpleNamespace(seconds=pace_of_it, note=lambda *_, **__: None)
    monkeypatch.setattr(receiver_module, "Deadline", Hourglass)

    receiver.finish(10.0)

    assert len(sink.records) == pytest.approx(read, abs=1)
    assert receiver.counts["traces.abandoned"] == 1000 - len(sink.records)
