"""Ids that follow from the record, so that a record which is scored twice is to be seen once."""

from __future__ import annotations

import pytest
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
from worker_parts import PARENT, SpanMaker, a_record, ids_of

COUNT = "ragspan.delivery.count"
NAMES = ["invoke_workflow answer", "retrieval store", "chat small"]


def spans_of(record, *, outcomes=None, maker=None, **about):
    return (maker or SpanMaker()).score(record, outcomes, **about)


@pytest.mark.parametrize("parent", [None, PARENT], ids=["without a parent", "with a parent"])
def test_a_record_has_the_same_ids_whenever_it_is_delivered(parent):
    first = spans_of(a_record(parent=parent))
    again = spans_of(a_record(parent=parent), number=3)

    assert set(ids_of(first)) == set(NAMES)
    assert ids_of(first) == ids_of(again)
    assert len({span_id for _, span_id in ids_of(first).values()}) == len(NAMES)
    assert len({trace_id for trace_id, _ in ids_of(first).values()}) == 1
    spans = {span.name: span for span in first}
    answer = spans.pop(NAMES[0])
    assert {span.parent.span_id for span in spans.values()} == {answer.context.span_id}
    if parent is not None:
        assert (answer.context.trace_id, answer.parent.span_id) == (PARENT.trace_id, PARENT.span_id)


@pytest.mark.parametrize(("number", "count"), [(1, None), (2, 2), (5, 5)])
def test_every_span_says_which_delivery_it_is_of_unless_it_is_the_first(number, count):
    spans = spans_of(a_record(), number=number)

    assert [span.attributes.get(COUNT) for span in spans] == [count] * 3


def test_a_sampler_keeps_and_drops_whole_traces_and_the_same_ones_each_time():
    def sampled():
        maker = SpanMaker(sampler=ParentBased(TraceIdRatioBased(0.5)))
        return [len(spans_of(a_record(f"record-{number}"), maker=maker)) for number in range(100)]

    kept = sampled()

    assert set(kept) == {0, 3}
    assert 25 < kept.count(3) < 75
    assert kept == sampled()
