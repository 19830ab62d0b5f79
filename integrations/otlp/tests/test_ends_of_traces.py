"""When a trace has ended, and what is held until then."""

from __future__ import annotations

import os

import pytest

from ragspan import ConfigurationError
from ragspan_otlp.buffer import LONGEST, BufferLimits, TraceBuffer
from ragspan_otlp.spans import RawSpan

ONE, OTHER = b"1" * 16, b"2" * 16


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


def raw(*, root=False, marked=True, size=100, span_id=None):
    return RawSpan(span_id or os.urandom(8), root, marked, bytes(size), "scope")


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def buffer(clock):
    return TraceBuffer(BufferLimits(quiet=2, deadline=30), clock=clock)


def ended(buffer):
    traces = list(buffer.ended())
    for trace in traces:
        buffer.release(trace)
    return {trace.id: len(trace.spans) for trace in traces}


@pytest.mark.parametrize(
    ("spans", "open_until", "ended_at"),
    [
        ([(0, False), (0, True), (1.5, False)], 3.4, 3.6),  # quiet after its last span
        ([(0, False)], 29, 31),  # its root does not come: the deadline
        ([(0, False), (20, True)], 21, 22),  # its root comes late
        ([(second, True) for second in range(int(LONGEST))], LONGEST - 0.5, LONGEST),  # it never falls silent
    ],
    ids=["quiet", "no root", "late root", "without end"],
)
def test_a_trace_ends_once_when_it_has_been_silent_or_is_too_old(buffer, clock, spans, open_until, ended_at):
    for second, is_root in spans:
        clock.now = 100 + second
        buffer.add(ONE, [raw(root=is_root)])
    clock.now = 100 + open_until

    assert ended(buffer) == {}

    clock.now = 100 + ended_at

    assert ended(buffer) == {ONE: len(spans)}
    assert ended(buffer) == {}
    assert len(buffer) == buffer.size == 0


def test_a_span_that_is_sent_again_is_one_span(buffer, clock):
    twice = raw(root=True)
    buffer.add(ONE, [twice])
    held = buffer.size
    buffer.add(ONE, [twice])
    clock.now += 3

    assert buffer.size == held
    assert ended(buffer) == {ONE: 1}


def test_a_span_of_a_trace_that_has_ended_is_counted_and_opens_no_other(buffer, clock):
    buffer.add(ONE, [raw(root=True)])
    clock.now += 3
    ended(buffer)

    assert buffer.add(ONE, [raw(), raw()]) == 0

    assert len(buffer) == buffer.size == 0
    assert buffer.counts["spans.late"] == 2


def test_a_trace_without_anything_to_read_is_let_go_of(buffer, clock):
    buffer.add(ONE, [raw(root=True, marked=False), raw(marked=False)])
    clock.now += 3

    assert ended(buffer) == {}
    assert len(buffer) == buffer.size == 0
    assert (buffer.counts["traces.ended"], buffer.counts["traces.of_interest"]) == (1, 0)


@pytest.mark.parametrize("limit", [{"max_trace_spans": 100}, {"max_trace_bytes": 30_000}], ids=["spans", "bytes"])
def test_a_trace_that_is_too_large_is_dropped_as_a_whole(clock, limit):
    buffer = TraceBuffer(BufferLimits(**limit), clock=clock)
    buffer.add(OTHER, [raw(root=True)])

    rejected = [buffer.add(ONE, [raw(root=True) for _ in range(60)]) for _ in range(3)]
    clock.now += 60

    assert rejected == [0, 60, 0]  # the third are late: nothing of it is held
    assert buffer.counts["traces.too_large"] == 1
    assert buffer.counts["spans.late"] == 60
    assert ended(buffer) == {OTHER: 1}
    assert buffer.size == 0


def test_it_is_full_until_what_has_ended_is_read(clock):
    buffer = TraceBuffer(BufferLimits(max_bytes=10_000), clock=clock)
    buffer.add(ONE, [raw(size=20_000, root=True)])
    clock.now += 3
    (trace,) = buffer.ended()

    assert buffer.is_full

    buffer.release(trace)

    assert not buffer.is_full


def test_it_is_full_if_there_are_too_many_traces(clock):
    buffer = TraceBuffer(BufferLimits(max_traces=1), clock=clock)
    assert not buffer.is_full

    buffer.add(ONE, [raw()])

    assert buffer.is_full


def test_ended_traces_are_remembered_up_to_a_bound(clock):
    buffer = TraceBuffer(BufferLimits(max_traces=10), clock=clock)
    for number in range(30):
        buffer.add(number.to_bytes(16, "big"), [raw(root=True)])
        clock.now += 3
        ended(buffer)

    buffer.add((29).to_bytes(16, "big"), [raw()])
    buffer.add((0).to_bytes(16, "big"), [raw()])

    assert buffer.counts["spans.late"] == 1
    assert len(buffer) == 1


def test_all_traces_can_be_ended_at_once(buffer):
    buffer.add(ONE, [raw()])
    buffer.add(OTHER, [raw(root=True)])

    assert {trace.id for trace in buffer.ended(all_of_them=True)} == {ONE, OTHER}


@pytest.mark.parametrize("limit", [{"quiet": 0}, {"deadline": -1}, {"max_bytes": 0}, {"max_traces": 1.5}])
def test_a_limit_that_cannot_be_one_is_refused(limit):
    with pytest.raises(ConfigurationError, match=next(iter(limit))):
        BufferLimits(**limit)
