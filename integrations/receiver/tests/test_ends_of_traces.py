"""When a trace has ended, and what is held until then."""

from __future__ import annotations

import os

import pytest

from ragspan import ConfigurationError
from ragspan.testing import RecordingSink
from ragspan_receiver.receiver import LONGEST, BufferLimits, Receiver
from ragspan_receiver.spans import RawSpan

ONE, OTHER = b"1" * 16, b"2" * 16


def raw(*, root=False, marked=True, size=100, span_id=None):
    return RawSpan(span_id or os.urandom(8), root, marked, bytes(size), "scope")


@pytest.fixture
def with_limits(clock):
    return lambda **limits: Receiver(RecordingSink(), limits=BufferLimits(**limits), clock=clock)


@pytest.fixture
def receiver(with_limits):
    return with_limits(quiet=2, deadline=30)


def ended(receiver):
    traces = list(receiver.ended())
    for trace in traces:
        receiver.release(trace)
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
def test_a_trace_ends_once_when_it_has_been_silent_or_is_too_old(receiver, clock, spans, open_until, ended_at):
    start = clock.now
    for second, is_root in spans:
        clock.now = start + second
        receiver.add(ONE, [raw(root=is_root)])
    clock.now = start + open_until

    assert ended(receiver) == {}

    clock.now = start + ended_at

    assert ended(receiver) == {ONE: len(spans)}
    assert ended(receiver) == {}
    assert receiver.figures()["open_traces"] == receiver.size == 0


def test_a_span_that_is_sent_again_is_one_span(receiver, clock):
    twice = raw(root=True)
    receiver.add(ONE, [twice])
    held = receiver.size
    receiver.add(ONE, [twice])
    clock.now += 3

    assert receiver.size == held
    assert ended(receiver) == {ONE: 1}


def test_a_span_of_a_trace_that_has_ended_is_counted_and_opens_no_other(receiver, clock):
    receiver.add(ONE, [raw(root=True)])
    clock.now += 3
    ended(receiver)

    assert receiver.add(ONE, [raw(), raw()]) == 0

    assert receiver.figures()["open_traces"] == receiver.size == 0
    assert receiver.counts["spans.late"] == 2


def test_a_trace_without_anything_to_read_is_let_go_of(receiver, clock):
    receiver.add(ONE, [raw(root=True, marked=False), raw(marked=False)])
    clock.now += 3

    assert ended(receiver) == {}
    assert receiver.figures()["open_traces"] == receiver.size == 0
    assert (receiver.counts["traces.ended"], receiver.counts["traces.of_interest"]) == (1, 0)


@pytest.mark.parametrize("limit", [{"max_trace_spans": 100}, {"max_trace_bytes": 30_000}], ids=["spans", "bytes"])
def test_a_trace_that_is_too_large_is_dropped_as_a_whole(with_limits, clock, limit):
    receiver = with_limits(**limit)
    receiver.add(OTHER, [raw(root=True)])

    rejected = [receiver.add(ONE, [raw(root=True) for _ in range(60)]) for _ in range(3)]
    clock.now += 60

    assert rejected == [0, 60, 0]  # the third are late: nothing of it is held
    assert receiver.counts["traces.too_large"] == 1
    assert receiver.counts["spans.late"] == 60
    assert ended(receiver) == {OTHER: 1}
    assert receiver.size == 0


def test_it_is_full_until_what_has_ended_is_read(with_limits, clock):
    receiver = with_limits(max_bytes=10_000)
    receiver.add(ONE, [raw(size=20_000, root=True)])
    clock.now += 3
    (trace,) = receiver.ended()

    assert not receiver.is_ready

    receiver.release(trace)

    assert receiver.is_ready


def test_it_is_full_if_there_are_too_many_traces(with_limits):
    receiver = with_limits(max_traces=1)
    assert receiver.is_ready

    receiver.add(ONE, [raw()])

    assert not receiver.is_ready


def test_ended_traces_are_remembered_up_to_a_bound(with_limits, clock):
    receiver = with_limits(max_traces=10)
    for number in range(30):
        receiver.add(number.to_bytes(16, "big"), [raw(root=True)])
        clock.now += 3
        ended(receiver)

    receiver.add((29).to_bytes(16, "big"), [raw()])
    receiver.add((0).to_bytes(16, "big"), [raw()])

    assert receiver.counts["spans.late"] == 1
    assert receiver.figures()["open_traces"] == 1


def test_all_traces_can_be_ended_at_once(receiver):
    receiver.add(ONE, [raw()])
    receiver.add(OTHER, [raw(root=True)])

    assert {trace.id for trace in receiver.ended(all_of_them=True)} == {ONE, OTHER}


@pytest.mark.parametrize("limit", [{"quiet": 0}, {"deadline": -1}, {"max_bytes": 0}, {"max_traces": 1.5}])
def test_a_limit_that_cannot_be_one_is_refused(limit):
    with pytest.raises(ConfigurationError, match=next(iter(limit))):
        BufferLimits(**limit)
