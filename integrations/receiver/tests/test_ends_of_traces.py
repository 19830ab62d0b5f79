"""When a trace has ended, and what is held until then."""

from __future__ import annotations

import os

import pytest

from ragspan import ConfigurationError
from ragspan_receiver.spans import RawSpan
from ragspan_receiver.traces import LONGEST, BufferLimits, OpenTraces

ONE, OTHER = b"1" * 16, b"2" * 16


def raw(*, root=False, marked=True, size=100, span_id=None, parent=b"elsewher", took=0.0, ended=100.0):
    return RawSpan(
        id=span_id or os.urandom(8),
        parent=b"" if root else parent,
        is_marked=marked,
        encoded=bytes(size),
        scope="scope",
        took=took,
        ended=ended,
    )


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
        ([(0, False), (0, True), (1.5, False)], 3.4, 3.6),  # quiet after its last span
        ([(0, False)], 29, 31),  # its root does not come: the deadline
        ([(0, False), (20, True)], 21, 22),  # its root comes late
        ([(second, True) for second in range(int(LONGEST))], LONGEST - 0.5, LONGEST),  # it never falls silent
    ],
    ids=["quiet", "no root", "late root", "without end"],
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


def test_a_span_that_is_sent_again_is_one_span(traces, clock):
    twice = raw(root=True)
    traces.add(ONE, [twice])
    held = traces.size
    traces.add(ONE, [twice])
    clock.now += 3

    assert traces.size == held
    assert ended(traces) == {ONE: 1}


def test_a_span_of_a_trace_that_has_ended_is_counted_and_opens_no_other(traces, clock):
    traces.add(ONE, [raw(root=True)])
    clock.now += 3
    ended(traces)

    assert traces.add(ONE, [raw(), raw()]) == 0

    assert len(traces) == traces.size == 0
    assert traces.counts["spans.late"] == 2


@pytest.mark.parametrize("limit", [{"max_trace_spans": 100}, {"max_trace_bytes": 30_000}], ids=["spans", "bytes"])
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
    traces = with_limits(max_bytes=10_000)
    traces.add(ONE, [raw(size=20_000, root=True)])
    clock.now += 3
    (trace,) = traces.ended()

    assert traces.is_full

    traces.release(trace)

    assert not traces.is_full


def test_it_is_full_if_there_are_too_many_traces(with_limits):
    traces = with_limits(max_traces=1)
    assert not traces.is_full

    traces.add(ONE, [raw()])

    assert traces.is_full


def test_at_the_end_of_the_process_a_trace_without_its_root_is_left_out_and_counted(traces):
    """An intermediate reply would be scored as the answer."""
    traces.add(ONE, [raw()])
    traces.add(OTHER, [raw(root=True)])

    assert [trace.id for trace in traces.ended(all_of_them=True)] == [OTHER]
    assert traces.counts["traces.cut_off"] == 1


def below(*parents):
    """A trace with a root, and a span for each of these pairs: whether a reader may understand it, and what it lies below."""
    spans = [raw(root=True, marked=False, span_id=b"root....")]
    for number, (marked, parent) in enumerate(parents):
        spans.append(raw(marked=marked, span_id=f"span...{number}".encode(), parent=parent))
    return spans


@pytest.mark.parametrize(
    ("spans", "is_read"),
    [
        (below((True, b"root....")), True),
        (below((True, b"span...1"), (False, b"root....")), True),
        (below((True, b"root...."), (False, b"goes on.")), True),  # nothing that is read lies there
        (below((True, b"goes on.")), False),  # an agent, whose caller did not wait for it
        (below((True, b"root...."), (True, b"goes on.")), False),  # the second of two turns
        (below((True, b"span...1"), (False, b"goes on.")), False),  # another service, whose client is not done
        (below((True, b"span...1"), (True, b"span...0")), True),  # it makes no sense, and ends
    ],
)
def test_at_the_end_of_the_process_a_trace_is_left_out_where_what_lies_around_a_span_is_missing(traces, spans, is_read):
    traces.add(ONE, spans)
    found = traces.ended(all_of_them=True)

    assert (len(found), traces.counts["traces.cut_off"]) == (is_read, not is_read)
    assert (traces.size > 0) == is_read


def test_a_trace_with_missing_spans_is_read_when_its_time_is_over(traces, clock):
    traces.add(ONE, below((True, b"no such.")))
    clock.now += 3

    assert ended(traces) == {ONE: 2}


@pytest.mark.parametrize(
    ("uptime", "took", "is_read"),
    [(5.0, 6.0, False), (5.0, 4.0, True), (5.0, LONGEST + 1, True), (700.0, LONGEST, True)],
    ids=["began before", "began after", "no measure", "long ago"],
)
def test_the_rest_of_a_trace_that_began_before_the_process_is_no_answer(traces, clock, uptime, took, is_read):
    """Another process had its first spans, which nobody can put together with these."""
    clock.now += uptime
    traces.add(ONE, [raw(), raw(root=True, took=took)])
    clock.now += 3

    assert ended(traces) == ({ONE: 2} if is_read else {})
    assert traces.counts["traces.cut_off"] == (not is_read)
    assert traces.size == 0


def test_a_trace_whose_first_spans_came_is_read_though_it_began_before_the_process(traces, clock):
    """An exporter holds spans back for seconds: after a start most traces began before it."""
    clock.now += 0.2
    traces.add(ONE, [raw(ended=99.5), raw(root=True, took=0.6)])
    clock.now += 3

    assert ended(traces) == {ONE: 2}


@pytest.mark.parametrize("limit", [{"quiet": 0}, {"deadline": -1}, {"max_bytes": 0}, {"max_traces": 1.5}])
def test_a_limit_that_cannot_be_one_is_refused(limit):
    with pytest.raises(ConfigurationError, match=next(iter(limit))):
        BufferLimits(**limit)
