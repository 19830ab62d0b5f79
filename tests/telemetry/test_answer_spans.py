from __future__ import annotations

import pytest
from opentelemetry.trace import SpanKind, StatusCode

from ragspan.records import SpanAnchor

STARTED = 1_700_000_000_000_000_000
SECOND = 1_000_000_000


def test_the_answers_span_says_what_it_is(telemetry, make_record, answer):
    record = make_record(session_id="s1", user_id="u1", tags=("prod",), swallowed_errors=("TimeoutError",))
    answer(telemetry.emitter(), record, refusal=True, language="de")

    span = telemetry.span("invoke_workflow rivers")
    assert span.kind is SpanKind.INTERNAL
    assert dict(span.attributes) == {
        "openinference.span.kind": "CHAIN",
        "gen_ai.operation.name": "invoke_workflow",
        "ragspan.record_id": "record-1",
        "ragspan.framework": "langchain",
        "ragspan.answer.status": "complete",
        "ragspan.answer.refusal": True,
        "ragspan.language": "de",
        "ragspan.answer.swallowed_errors": ("TimeoutError",),
        "ragspan.contexts.count": 2,
        "gen_ai.workflow.name": "rivers",
        "session.id": "s1",
        "gen_ai.conversation.id": "s1",
        "tag.tags": ("prod",),
    }


def test_the_answers_span_is_a_child_of_the_records_parent(telemetry, make_record, answer, parent):
    anchor = answer(telemetry.emitter(), make_record())

    span = telemetry.span("invoke_workflow rivers")
    assert span.parent.span_id == parent.span_id
    assert span.parent.is_remote
    assert span.context.trace_id == anchor.trace_id == parent.trace_id
    assert span.context.span_id == anchor.span_id


def test_flags_and_trace_state_come_down_from_the_parent(telemetry, make_record, answer):
    random_and_sampled = SpanAnchor(trace_id=1, span_id=2, trace_flags=3, trace_state="a=1,b=2")

    anchor = telemetry.emitter().start(make_record(parent=random_and_sampled)).span

    assert anchor.trace_state == "a=1,b=2"
    assert anchor.sampled


def test_the_ambient_span_of_the_thread_is_never_adopted(telemetry, make_record, answer):
    ambient = telemetry.tracer_provider.get_tracer("somebody else")
    with ambient.start_as_current_span("ambient"):
        answer(telemetry.emitter(), make_record(parent=None))

    assert telemetry.span("invoke_workflow rivers").parent is None
    assert telemetry.span("invoke_workflow rivers").context.trace_id != telemetry.span("ambient").context.trace_id


def test_a_parent_that_cannot_be_one_is_left_out(telemetry, make_record, answer):
    answer(telemetry.emitter(), make_record(parent=SpanAnchor(trace_id=2**130, span_id=0)))

    assert telemetry.span("invoke_workflow rivers").parent is None


@pytest.mark.parametrize(
    ("started", "ended", "expected"),
    [
        pytest.param(STARTED, STARTED + 2 * SECOND, (STARTED, STARTED + 2 * SECOND), id="the record's own"),
        pytest.param(STARTED, STARTED - SECOND, (STARTED, STARTED), id="ends before it starts"),
        pytest.param(-5, -3, (0, 0), id="before 1970, which cannot be encoded"),
    ],
)
def test_the_answers_span_has_the_answers_times(telemetry, make_record, answer, started, ended, expected):
    answer(telemetry.emitter(), make_record(started_ns=started, ended_ns=ended, retrievals=(), generations=()))

    span = telemetry.span("invoke_workflow rivers")
    assert (span.start_time, span.end_time) == expected


@pytest.mark.parametrize(
    ("status", "error_type", "code"),
    [
        ("error", "RateLimitError", StatusCode.ERROR),
        ("aborted", None, StatusCode.UNSET),
        ("interrupted", None, StatusCode.UNSET),
        ("complete", None, StatusCode.UNSET),
    ],
)
def test_only_a_failed_answer_is_an_error_and_has_its_type(telemetry, make_record, answer, status, error_type, code):
    answer(telemetry.emitter(), make_record(status=status, error_type=error_type))

    span = telemetry.span("invoke_workflow rivers")
    assert span.status.status_code is code
    assert span.attributes["ragspan.answer.status"] == status
    assert span.attributes.get("error.type") == error_type


def test_question_and_response_are_there_when_content_is_wanted_and_unknown_contexts_are_not_counted(
    telemetry, make_record, answer
):
    answer(telemetry.emitter(capture_content=True), make_record(contexts=None))

    attributes = telemetry.span("invoke_workflow rivers").attributes
    assert attributes["input.value"] == "How long is the Nile?"
    assert attributes["output.value"] == "It is 6650 km long."
    assert attributes["input.mime_type"] == attributes["output.mime_type"] == "text/plain"
    assert "ragspan.contexts.count" not in attributes
