"""When a trace has ended, and what is held until then."""

from __future__ import annotations

import os

import pytest

from ragspan import ConfigurationError
from ragspan_receiver.spans import RawSpan
from ragspan_receiver.traces import BufferLimits, OpenTraces

ONE, OTHER = b"1" * 16, b"2" * 16


def raw(*, root=False, size=100):
    return RawSpan(id=os.urandom(8), is_root=root, is_marked=True, encoded=bytes(size), scope="scope")


@pytest.fixture
def with_limits(clock):
    return lambda **limits: OpenTraces(BufferLimits(**limits), clock)


@pytest.fixture
def traces(with_limits):
    return with_limits(quiet=2, deadline=30)


def ended(traces):
    found = traces.ended()
    for trace in found:
        traces.release(trace)
    return {trace.id: len(trace.spans) for trace in found}


@pytest.mark.parametrize(
    ("spans", "open_until", "ended_at"),
    [
        ([(0, False), (0, True), (1.5, False)], 3.4, 3.5),  # quiet after its last span
        ([(0, False)], 29.9, 30),  # its root does not come: the deadline
        ([(0, False), (20, True)], 21.9, 22),  # its root comes late
    ],
    ids=["quiet", "no root", "late root"],
)
def test_a_trace_ends_once_when_it_has_been_silent_or_is_too_old(traces, clock, spans, open_until, ended_at):
    start = clock.now
    for second, is_root in spans:
        clock.now = start + second
        traces.add(ONE, [raw(root=is_root)])
    clock.now = start + open_until

    assert ended(traces) == {}

    clock.now = start + ended_at

    assert ended(traces) == {ONE: len(spans)}
    assert ended(traces) == {}
    assert len(traces) == traces.size == 0


def test_a_span_of_a_trace_that_has_ended_is_counted_and_opens_no_other_until_that_is_forgotten(with_limits, clock):
    traces = with_limits(max_traces=1)
    traces.add(ONE, [raw(root=True)])
    clock.now += 3
    ended(traces)

    assert traces.add(ONE, [raw(), raw()]) == 0

    assert len(traces) == traces.size == 0
    assert traces.counts["spans.late"] == 2

    traces.add(OTHER, [raw(root=True)])
    traces.ended(all_of_them=True)
    traces.add(ONE, [raw()])
    assert len(traces) == 1


@pytest.mark.parametrize("limit", [{"max_trace_spans": 60}, {"max_trace_bytes": 24_700}], ids=["spans", "bytes"])
def test_a_trace_that_is_too_large_is_dropped_as_a_whole(with_limits, clock, limit):
    traces = with_limits(**limit)
    traces.add(OTHER, [raw(root=True)])

    rejected = [traces.add(ONE, [raw(root=True) for _ in range(60)]) for _ in range(3)]
    clock.now += 60

    assert rejected == [0, 60, 0]  # the third are late: nothing of it is held
    assert traces.counts["traces.too_large"] == 1
    assert traces.counts["spans.late"] == 60
    assert ended(traces) == {OTHER: 1}
    assert traces.size == 0


def test_it_is_full_until_what_has_ended_is_read(with_limits, clock):
    traces = with_limits(max_bytes=21_000)
    traces.add(ONE, [raw(size=20_000, root=True)] * 2)  # an exporter may send a span again
    clock.now += 3
    (trace,) = traces.ended()

    assert (traces.size, traces.is_full) == (21_000, True)

    traces.release(trace)

    assert not traces.is_full


def test_at_the_end_of_the_process_a_trace_without_its_root_is_left_out_and_counted(traces):
    """An intermediate reply would be scored as the answer."""
    traces.add(ONE, [raw()])
    traces.add(OTHER, [raw(root=True)])

    assert [trace.id for trace in traces.ended(all_of_them=True)] == [OTHER]
    assert traces.counts["traces.cut_off"] == 1


def test_the_limits_where_none_are_given():
    most = {"max_bytes": 2**28, "max_traces": 100_000, "max_trace_spans": 10_000, "max_trace_bytes": 2**24}
    assert BufferLimits() == BufferLimits(quiet=2.0, deadline=30.0, **most)


@pytest.mark.parametrize("limit", [{"quiet": 0}, {"deadline": -1}, {"max_bytes": 0}, {"max_traces": 1.5}])
def test_a_limit_that_cannot_be_one_is_refused(limit):
    with pytest.raises(ConfigurationError, match=f"^{next(iter(limit))} is .*, but should be "):
        BufferLimits(**limit)
