"""Tools, agents and rerankers on a trace."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest
from opentelemetry.sdk.trace import SpanLimits
from opentelemetry.trace import SpanKind, StatusCode

from ragspan import ErrorReport, Reranking, RetrievedContext, ToolCall
from ragspan.redaction import redacted

STARTED, SECOND = 1_700_000_000_000_000_000, 1_000_000_000
REPORT = ErrorReport(
    type="shop.NoStock", message="no Quezzle left", stacktrace="Traceback\nshop.NoStock: no Quezzle left"
)


@pytest.fixture
def call():
    return ToolCall(
        name="order",
        started_ns=STARTED,
        ended_ns=STARTED + SECOND,
        call_id="call-1",
        arguments='{"what": "Quezzle"}',
        result="ordered: Qibble",
    )


@pytest.fixture
def reranking():
    first, second = RetrievedContext(text="Pogglewood", id="d1"), RetrievedContext(text="Zanzifer", id="d2", score=0.9)
    return Reranking(
        name="CrossEncoder",
        query="Quezzle",
        started_ns=STARTED,
        ended_ns=STARTED + SECOND,
        given=(first, second),
        contexts=(second,),
        model="ranker-1",
        top_k=1,
    )


@pytest.mark.parametrize("content", [False, True])
def test_a_tools_span_shows_what_went_in_and_came_out_only_with_content(telemetry, make_record, answer, call, content):
    answer(telemetry.emitter(capture_content=content), make_record(tool_calls=(call,)))

    span = telemetry.span("execute_tool order")
    assert span.kind is SpanKind.INTERNAL
    assert (span.start_time, span.end_time) == (STARTED, STARTED + SECOND)
    texts = {
        "gen_ai.tool.call.arguments": '{"what": "Quezzle"}',
        "input.value": '{"what": "Quezzle"}',
        "input.mime_type": "application/json",
        "gen_ai.tool.call.result": "ordered: Qibble",
        "output.value": "ordered: Qibble",
        "output.mime_type": "text/plain",
    }
    assert dict(span.attributes) == {
        "openinference.span.kind": "TOOL",
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "order",
        "gen_ai.tool.call.id": "call-1",
        "tool.name": "order",
        **(texts if content else {}),
    }


def test_what_a_tool_does_is_below_its_span(telemetry, make_record, answer, call, search):
    inner = replace(call, name="inner", within=0)
    record = make_record(tool_calls=(call, inner), retrievals=(replace(search, within=1),))
    answer(telemetry.emitter(), record)

    spans = {span.name: span for span in telemetry.spans}
    below = ["invoke_workflow rivers", "execute_tool order", "execute_tool inner", "retrieval search"]
    assert [spans[name].parent.span_id for name in below[1:]] == [spans[name].context.span_id for name in below[:-1]]
    assert spans["chat small-model"].parent.span_id == spans["invoke_workflow rivers"].context.span_id


@pytest.mark.parametrize("within", [0, 1, 7, -1])
def test_a_tool_inside_none_that_began_before_is_below_the_answer(telemetry, make_record, answer, call, within):
    answer(telemetry.emitter(), make_record(tool_calls=(replace(call, within=within),)))

    root = telemetry.span("invoke_workflow rivers").context.span_id
    assert telemetry.span("execute_tool order").parent.span_id == root


def test_an_answer_of_an_agent_is_one(telemetry, make_record, answer):
    answer(telemetry.emitter(), make_record(is_agent=True))

    attributes = telemetry.span("invoke_agent rivers").attributes
    assert attributes["openinference.span.kind"] == "AGENT"
    assert attributes["gen_ai.operation.name"] == "invoke_agent"
    assert attributes["gen_ai.agent.name"] == attributes["agent.name"] == "rivers"
    assert "gen_ai.workflow.name" not in attributes


def test_a_search_that_is_a_tool_names_it_and_what_was_searched(telemetry, make_record, answer, search):
    search = replace(search, data_source_id="handbook", top_k=4, tool_name="look_up", tool_call_id="call-2")
    answer(telemetry.emitter(), make_record(retrievals=(search,)))

    attributes = telemetry.span("retrieval handbook").attributes
    assert attributes["gen_ai.data_source.id"] == "handbook"
    assert attributes["gen_ai.retrieval.top_k"] == 4
    assert (attributes["gen_ai.tool.name"], attributes["gen_ai.tool.call.id"]) == ("look_up", "call-2")


@pytest.mark.parametrize("content", [False, True])
def test_a_reranker_shows_ids_and_scores_and_only_with_content_texts(
    telemetry, make_record, answer, reranking, content
):
    answer(telemetry.emitter(capture_content=content), make_record(rerankings=(reranking,)))

    texts = {
        "reranker.query": "Quezzle",
        "input.value": "Quezzle",
        "input.mime_type": "text/plain",
        "reranker.output_documents.0.document.content": "Zanzifer",
        "reranker.input_documents.0.document.content": "Pogglewood",
        "reranker.input_documents.1.document.content": "Zanzifer",
    }
    assert dict(telemetry.span("rerank CrossEncoder").attributes) == {
        "openinference.span.kind": "RERANKER",
        "gen_ai.operation.name": "rerank",
        "reranker.top_k": 1,
        "reranker.model_name": "ranker-1",
        "reranker.output_documents.0.document.id": "d2",
        "reranker.output_documents.0.document.score": 0.9,
        "reranker.input_documents.0.document.id": "d1",
        "reranker.input_documents.1.document.id": "d2",
        "reranker.input_documents.1.document.score": 0.9,
        **(texts if content else {}),
    }


def test_what_a_reranker_left_stays_where_a_span_is_full(make_telemetry, make_record, answer, reranking):
    telemetry = make_telemetry(limits=SpanLimits(max_span_attributes=7))
    answer(telemetry.emitter(), make_record(rerankings=(reranking,)))

    span = telemetry.span("rerank CrossEncoder")
    assert span.dropped_attributes == 0
    assert [name for name in span.attributes if name.endswith(".id")] == [
        "reranker.output_documents.0.document.id",
        "reranker.input_documents.0.document.id",
    ]


@pytest.mark.parametrize("content", [True, False])
def test_only_with_content_an_errors_message_is_an_event(telemetry, make_record, answer, call, content):
    failed = replace(call, error_type="NoStock", error=REPORT)
    record = make_record(tool_calls=(failed,), status="error", error_type="NoStock", error=REPORT)
    answer(telemetry.emitter(capture_content=content), record)

    for name in ("execute_tool order", "invoke_workflow rivers"):
        span = telemetry.span(name)
        assert span.status.status_code is StatusCode.ERROR
        assert span.attributes["error.type"] == "NoStock"
        assert [(event.name, dict(event.attributes), event.timestamp) for event in span.events] == content * [
            (
                "exception",
                {
                    "exception.type": "shop.NoStock",
                    "exception.message": "no Quezzle left",
                    "exception.stacktrace": REPORT.stacktrace,
                },
                span.end_time,
            )
        ]


@pytest.mark.parametrize("hidden", ["OPENINFERENCE_HIDE_INPUTS", "OPENINFERENCE_HIDE_OUTPUTS"])
def test_an_errors_message_stays_where_either_side_is_hidden(monkeypatch, telemetry, make_record, answer, call, hidden):
    monkeypatch.setenv(hidden, "true")
    answer(
        telemetry.emitter(capture_content=True), make_record(tool_calls=(replace(call, error_type="E", error=REPORT),))
    )

    span = telemetry.span("execute_tool order")
    assert span.events == ()
    assert ("input.value" in span.attributes, "output.value" in span.attributes) == (
        hidden.endswith("OUTPUTS"),
        hidden.endswith("INPUTS"),
    )


def test_what_redact_makes_of_texts_is_what_spans_show(telemetry, make_record, answer, call, reranking):
    record = make_record(
        tool_calls=(replace(call, error_type="NoStock", error=REPORT),), rerankings=(reranking,), is_agent=True
    )
    names = ("Quezzle", "Qibble", "Pogglewood", "Zanzifer")
    masked = redacted(record, lambda text: re.sub("|".join(names), "***", text))
    answer(telemetry.emitter(capture_content=True), masked)

    shown = "".join(span.to_json() for span in telemetry.spans)
    assert [name for name in names if name in shown] == []
    assert json.loads(masked.tool_calls[0].arguments) == {"what": "***"}
    assert (masked.tool_calls[0].name, masked.tool_calls[0].call_id) == ("order", "call-1")
    assert masked.tool_calls[0].error.type == "shop.NoStock"
