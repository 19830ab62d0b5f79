"""Ids that follow from the record, so that a record which is scored twice is to be seen once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.sdk.trace.sampling import (
    ALWAYS_OFF,
    Decision,
    ParentBased,
    Sampler,
    SamplingResult,
    TraceIdRatioBased,
)
from worker_parts import PARENT, SpanMaker, a_record, ids_of

from ragspan.outcomes import NotApplicable, Score
from ragspan.records import SpanAnchor

COUNT = "ragspan.delivery.count"
ALL_NAMES = {"invoke_workflow answer", "retrieval store", "chat small"}


def spans_of(record, *, number=1, outcomes=None, maker=None):
    return (maker or SpanMaker()).score(record, outcomes, number=number)


@pytest.mark.parametrize("parent", [None, PARENT], ids=["without a parent", "with a parent"])
def test_a_record_has_the_same_ids_whenever_it_is_delivered(parent):
    first = spans_of(a_record(parent=parent))
    again = spans_of(a_record(parent=parent), number=3)

    assert set(ids_of(first)) == ALL_NAMES
    assert ids_of(first) == ids_of(again)
    assert len({span_id for _, span_id in ids_of(first).values()}) == len(ALL_NAMES)
    assert len({trace_id for trace_id, _ in ids_of(first).values()}) == 1


def test_records_that_are_scored_at_the_same_time_keep_their_ids_apart():
    maker = SpanMaker()
    one, other = a_record("one"), a_record("other")
    first, second = maker.open(one), maker.open(other)

    assert ids_of(maker.emit(second, other)) == ids_of(spans_of(other))
    assert ids_of(maker.emit(first, one)) == ids_of(spans_of(one))


def test_the_answer_stands_below_its_parent_and_all_else_below_the_answer():
    spans = {span.name: span for span in spans_of(a_record(parent=PARENT))}

    answer = spans.pop("invoke_workflow answer")
    assert (answer.context.trace_id, answer.parent.span_id) == (PARENT.trace_id, PARENT.span_id)
    assert {span.parent.span_id for span in spans.values()} == {answer.context.span_id}


def test_searches_of_the_same_name_have_ids_of_their_own():
    search = a_record().retrievals[0]
    spans = spans_of(a_record(retrievals=(search, search, search)))

    searches = [span.context.span_id for span in spans if span.name == "retrieval store"]
    assert len(set(searches)) == 3


def test_an_evaluation_has_its_id_whatever_other_metrics_there_are():
    """`spans="scores"` makes a span for each metric that says something, which may be another set the next time."""
    score, silent = Score(value=1.0), NotApplicable(reason="budget_exhausted")

    def ids(**outcomes):
        maker = SpanMaker(spans="scores")
        return ids_of(spans_of(a_record(parent=PARENT), outcomes=outcomes, maker=maker))

    all_three = ids(adherence=score, completeness=score, faithfulness=score)
    fewer = ids(adherence=silent, completeness=score, faithfulness=score)
    other_way_round = ids(faithfulness=score, completeness=score)

    assert set(all_three) == {"evaluation adherence", "evaluation completeness", "evaluation faithfulness"}
    assert fewer == other_way_round == {name: all_three[name] for name in fewer}
    assert len(fewer) == 2


@pytest.mark.parametrize(
    ("number", "earlier", "counts"), [(1, 0, {None}), (2, 0, {2}), (5, 0, {5}), (1, 5, {6}), (2, 3, {5})]
)
def test_every_span_says_which_delivery_it_is_of_unless_it_is_the_first(number, earlier, counts):
    spans = SpanMaker().score(a_record(), number=number, earlier=earlier)

    assert len(spans) == 3
    assert {span.attributes.get(COUNT) for span in spans} == counts


@given(record_id=st.text(min_size=1), name=st.text(max_size=50))
def test_no_id_is_zero_whatever_a_record_is_called(record_id, name):
    spans = spans_of(a_record(record_id, name=name))

    assert spans
    assert all(trace_id and span_id for trace_id, span_id in ids_of(spans).values())


def test_a_record_whose_id_looks_like_more_has_ids_of_its_own():
    """What an id is made of cannot be shifted from one of its parts to another."""
    search = a_record().retrievals[0]
    one = a_record("x", name="a b", retrievals=())
    other = a_record("b x", name="a", retrievals=(search,))

    ids = [span_id for record in (one, other) for _, span_id in ids_of(spans_of(record)).values()]
    assert len(set(ids)) == len(ids)


def test_a_delivery_that_comes_to_nothing_leaves_no_span_behind():
    delivery = SpanMaker().open(a_record())

    delivery.handle.abandon()

    assert delivery.spans == []


@pytest.mark.parametrize("parent", [SpanAnchor(trace_id=1, span_id=2, trace_flags=0), None])
def test_an_answer_that_is_not_sampled_has_nothing_to_export(parent):
    sampler = ParentBased(ALWAYS_OFF)

    assert spans_of(a_record(parent=parent), maker=SpanMaker(sampler=sampler)) == []


def test_what_is_recorded_but_not_sampled_is_not_exported():
    class RecordingOnly(Sampler):
        def should_sample(self, parent_context, trace_id, name, kind=None, attributes=None, links=()):
            return SamplingResult(Decision.RECORD_ONLY, attributes)

        def get_description(self):
            return "RecordingOnly"

    assert spans_of(a_record(), maker=SpanMaker(sampler=RecordingOnly())) == []


def test_a_sampler_keeps_and_drops_whole_traces_and_the_same_ones_each_time():
    def sampled():
        maker = SpanMaker(sampler=ParentBased(TraceIdRatioBased(0.5)))
        return [len(spans_of(a_record(f"record-{number}"), maker=maker)) for number in range(400)]

    kept = sampled()

    assert set(kept) == {0, 3}
    assert 140 < kept.count(3) < 260
    assert kept == sampled()


def test_a_sampler_sees_what_it_would_see_without_us():
    seen = []

    class Watching(TraceIdRatioBased):
        def should_sample(self, parent_context, trace_id, name, kind=None, attributes=None, links=()):
            seen.append((name, dict(attributes)))
            return super().should_sample(parent_context, trace_id, name, kind, attributes, links)

    maker = SpanMaker(sampler=Watching(1.0))
    spans_of(a_record(), maker=maker)

    assert [name for name, _ in seen] == ["invoke_workflow answer", "retrieval store", "chat small"]
    assert seen[0][1]["ragspan.record_id"] == "record-1"
