"""What the spans of odd answers and odd steps are; `test_whole_answer` has those of a usual one."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from ragspan import RetrievedContext
from ragspan.engine.redaction import redacted
from ragspan.messages import ErrorReport
from ragspan.records import Reranking, SpanAnchor, ToolCall

STARTED, SECOND = 1_700_000_000_000_000_000, 1_000_000_000
REPORT = ErrorReport(type="shop.NoStock", message="no Quezzle left")
ORDER = ToolCall(
    name="order", started_ns=STARTED, ended_ns=STARTED + SECOND, arguments='{"what": "Quezzle"}', result="Qibble"
)
RERANKING = Reranking(
    name="ranker",
    query="Quezzle",
    started_ns=STARTED,
    ended_ns=STARTED + SECOND,
    given=(RetrievedContext(text="Pogglewood", id="d1"), RetrievedContext(text="Zanzifer", id="d2", score=0.9)),
    contexts=(RetrievedContext(text="Zanzifer", id="d2", score=0.9),),
    model="ranker-1",
    top_k=1,
)


def test_flags_and_trace_state_come_down_from_the_parent(telemetry, make_record, answer):
    parent = SpanAnchor(trace_id=1, span_id=2, trace_flags=3, trace_state="a=1,b=2", is_remote=True)
    anchor = answer(telemetry.emitter(), make_record(parent=parent))

    span = telemetry.span("invoke_workflow rivers")
    assert (span.parent.span_id, span.parent.is_remote, span.context.trace_id) == (2, True, 1)
    assert (anchor.span_id, anchor.trace_state, anchor.sampled) == (span.context.span_id, "a=1,b=2", True)


@pytest.mark.parametrize("parent", [None, SpanAnchor(trace_id=2**130, span_id=0)], ids=["none", "impossible"])
def test_the_ambient_span_of_the_thread_is_never_adopted(telemetry, make_record, answer, parent):
    with telemetry.tracer_provider.get_tracer("somebody else").start_as_current_span("ambient"):
        answer(telemetry.emitter(), make_record(parent=parent))

    assert telemetry.span("invoke_workflow rivers").parent is None
    assert telemetry.span("invoke_workflow rivers").context.trace_id != telemetry.span("ambient").context.trace_id


@pytest.mark.parametrize(
    ("of_answer", "of_step", "shown"),
    [
        ((10, 20), (5, 25), (10, 20)),
        ((10, 20), (18, 12), (18, 18)),
        ((0, 0), (5, 25), (5, 25)),
        ((20, 10), (-5, 0), (0, 0)),
    ],
)
def test_a_step_lies_within_the_answer_unless_its_times_are_not_known(
    telemetry, make_record, answer, search, of_answer, of_step, shown
):
    step = replace(search, started_ns=of_step[0], ended_ns=of_step[1])
    answer(telemetry.emitter(), make_record(started_ns=of_answer[0], ended_ns=of_answer[1], retrievals=(step,)))

    span, whole = telemetry.span("retrieval search"), telemetry.span("invoke_workflow rivers")
    assert (span.start_time, span.end_time) == shown
    assert (whole.start_time, whole.end_time) == (of_answer[0], max(of_answer))


@pytest.mark.parametrize("hidden", ["OPENINFERENCE_HIDE_INPUTS", "OPENINFERENCE_HIDE_OUTPUTS"])
def test_an_errors_message_stays_where_either_side_is_hidden(monkeypatch, telemetry, make_record, answer, hidden):
    monkeypatch.setenv(hidden, "true")
    failed = replace(ORDER, error_type="E", error=REPORT)
    answer(telemetry.emitter(capture_content=True), make_record(tool_calls=(failed,)))

    span = telemetry.span("execute_tool order")
    assert span.events == ()
    assert ("input.value" in span.attributes, "output.value" in span.attributes) == (
        hidden.endswith("OUTPUTS"),
        hidden.endswith("INPUTS"),
    )


def test_what_redact_makes_of_texts_is_what_spans_show(telemetry, make_record, answer):
    failed = replace(ORDER, error_type="NoStock", error=REPORT, call_id="call-1")
    names = ("Quezzle", "Qibble", "Pogglewood", "Zanzifer")
    record = make_record(tool_calls=(failed,), rerankings=(RERANKING,), is_agent=True)
    masked = redacted(record, lambda text: re.sub("|".join(names), "***", text))
    answer(telemetry.emitter(capture_content=True), masked)

    shown = "".join(span.to_json() for span in telemetry.spans)
    assert [name for name in names if name in shown] == []
    assert json.loads(masked.tool_calls[0].arguments) == {"what": "***"}
    assert (masked.tool_calls[0].call_id, masked.tool_calls[0].error.type) == ("call-1", "shop.NoStock")
