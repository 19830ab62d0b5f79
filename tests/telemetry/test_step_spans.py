from __future__ import annotations

import json
from dataclasses import replace

import pytest
from opentelemetry.trace import SpanKind, StatusCode

from ragspan.records import RetrievedContext

STARTED = 1_700_000_000_000_000_000
SECOND = 1_000_000_000


def test_searches_and_model_calls_are_children_with_their_own_times(telemetry, make_record, answer):
    answer(telemetry.emitter(), make_record())

    rag, search, chat = (
        telemetry.span(name) for name in ("invoke_workflow rivers", "retrieval vector_store", "chat small-model")
    )
    assert search.parent.span_id == chat.parent.span_id == rag.context.span_id
    assert search.context.trace_id == chat.context.trace_id == rag.context.trace_id
    assert (search.start_time, search.end_time) == (STARTED + SECOND // 10, STARTED + SECOND // 2)
    assert (chat.start_time, chat.end_time) == (STARTED + SECOND // 2, STARTED + 2 * SECOND)


def test_a_search_shows_ids_and_scores_but_no_text(telemetry, make_record, answer):
    answer(telemetry.emitter(), make_record())

    span = telemetry.span("retrieval vector_store")
    assert span.kind is SpanKind.CLIENT
    assert dict(span.attributes) == {
        "openinference.span.kind": "RETRIEVER",
        "gen_ai.operation.name": "retrieval",
        "gen_ai.retrieval.documents": span.attributes["gen_ai.retrieval.documents"],
        "retrieval.documents.0.document.id": "doc-1",
        "retrieval.documents.0.document.score": 0.9,
        "retrieval.documents.1.document.id": "doc-2",
        "retrieval.documents.1.document.score": 0.4,
    }
    assert json.loads(span.attributes["gen_ai.retrieval.documents"]) == [
        {"id": "doc-1", "score": 0.9},
        {"id": "doc-2", "score": 0.4},
    ]


def test_without_openinference_a_search_shows_its_documents_once(telemetry, make_record, answer):
    answer(telemetry.emitter(openinference=False), make_record())

    attributes = telemetry.span("retrieval vector_store").attributes
    assert not [name for name in attributes if name.startswith("retrieval.documents")]
    assert len(json.loads(attributes["gen_ai.retrieval.documents"])) == 2


def test_a_document_without_id_and_score_leaves_no_gap(telemetry, make_record, answer, search):
    """Phoenix makes a list of the numbers, closes its gaps, and would take the second document for the first."""
    passages = (RetrievedContext(text="a"), RetrievedContext(text="b", id="second"))
    answer(telemetry.emitter(), make_record(retrievals=(replace(search, contexts=passages),)))

    attributes = telemetry.span("retrieval search").attributes
    assert {name: value for name, value in attributes.items() if name.startswith("retrieval.documents")} == {
        "retrieval.documents.0.document.metadata": '{"rank": 0}',
        "retrieval.documents.1.document.id": "second",
    }


@pytest.mark.parametrize(("content", "number", "lengths"), [(False, 50, set()), (True, 30, {2000})])
def test_many_documents_are_cut_in_number_and_length_and_evict_nothing(
    telemetry, make_record, answer, search, content, number, lengths
):
    passages = tuple(RetrievedContext(text="x" * 5000, id=f"d{i}", score=1.0) for i in range(200))
    record = make_record(retrievals=(replace(search, contexts=passages),))
    answer(telemetry.emitter(capture_content=content), record)

    span = telemetry.span("retrieval search")
    assert len([name for name in span.attributes if name.endswith("document.id")]) == number
    assert {len(value) for name, value in span.attributes.items() if name.endswith(".content")} == lengths
    assert span.dropped_attributes == 0
    assert span.attributes["openinference.span.kind"] == "RETRIEVER"


def test_a_search_shows_query_and_passages_when_content_is_wanted(telemetry, make_record, answer):
    answer(telemetry.emitter(capture_content=True), make_record())

    attributes = telemetry.span("retrieval vector_store").attributes
    assert attributes["input.value"] == attributes["gen_ai.retrieval.query.text"] == "length of the Nile"
    assert attributes["retrieval.documents.1.document.id"] == "doc-2"
    assert attributes["retrieval.documents.1.document.score"] == 0.4
    assert attributes["retrieval.documents.1.document.content"] == "The Nile ends in Egypt."


@pytest.mark.parametrize("odd", [float("nan"), float("inf"), None])
def test_a_retriever_without_a_sensible_score_still_has_its_place(telemetry, make_record, answer, search, odd):
    passages = (RetrievedContext(text="a", score=odd), RetrievedContext(text="b", id="second"))
    answer(telemetry.emitter(capture_content=True), make_record(retrievals=(replace(search, contexts=passages),)))

    attributes = telemetry.span("retrieval search").attributes
    assert json.loads(attributes["gen_ai.retrieval.documents"]) == [{}, {"id": "second"}]
    assert "retrieval.documents.0.document.score" not in attributes


def test_long_ids_leave_valid_json(telemetry, make_record, answer, search):
    passages = tuple(RetrievedContext(text="", id="\u00fc" * 1000) for _ in range(50))
    answer(telemetry.emitter(), make_record(retrievals=(replace(search, contexts=passages),)))

    text = telemetry.span("retrieval search").attributes["gen_ai.retrieval.documents"]
    assert 0 < len(json.loads(text)) < 50


def test_a_model_call_has_the_names_of_both_conventions(telemetry, make_record, answer):
    answer(telemetry.emitter(), make_record())

    span = telemetry.span("chat small-model")
    assert span.kind is SpanKind.CLIENT
    assert dict(span.attributes) == {
        "openinference.span.kind": "LLM",
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "small-model",
        "gen_ai.usage.input_tokens": 100,
        "gen_ai.usage.output_tokens": 20,
        "gen_ai.response.finish_reasons": ("stop",),
        "gen_ai.response.time_to_first_chunk": 0.5,
        "llm.model_name": "small-model",
        "llm.provider": "openai",
        "llm.token_count.prompt": 100,
        "llm.token_count.completion": 20,
        "llm.token_count.total": 120,
        "llm.finish_reason": "stop",
    }


def test_a_model_call_of_which_little_is_known_says_little(telemetry, make_record, answer, call):
    answer(telemetry.emitter(), make_record(generations=(replace(call, input_tokens=5),)))

    assert dict(telemetry.span("chat").attributes) == {
        "openinference.span.kind": "LLM",
        "gen_ai.operation.name": "chat",
        "gen_ai.usage.input_tokens": 5,
        "llm.token_count.prompt": 5,
    }


def test_a_failed_step_is_an_error_and_the_answer_is_not(telemetry, make_record, answer, search, call):
    record = make_record(
        retrievals=(replace(search, error_type="ConnectionError"),),
        generations=(replace(call, error_type="RateLimitError"),),
    )
    answer(telemetry.emitter(), record)

    for name, error_type in (("retrieval search", "ConnectionError"), ("chat", "RateLimitError")):
        assert telemetry.span(name).status.status_code is StatusCode.ERROR
        assert telemetry.span(name).attributes["error.type"] == error_type
    assert telemetry.span("invoke_workflow rivers").status.status_code is StatusCode.UNSET


@pytest.mark.parametrize(
    ("started", "ended", "expected"),
    [
        pytest.param(-SECOND, SECOND, (0, SECOND), id="starts before the answer"),
        pytest.param(SECOND, 9 * SECOND, (SECOND, 2 * SECOND), id="ends after the answer"),
        pytest.param(SECOND, 0, (SECOND, SECOND), id="ends before it starts"),
        pytest.param(5 * SECOND, 6 * SECOND, (2 * SECOND, 2 * SECOND), id="lies after the answer"),
    ],
)
def test_steps_are_clamped_into_the_answer(telemetry, make_record, answer, search, started, ended, expected):
    step = replace(search, started_ns=STARTED + started, ended_ns=STARTED + ended)
    answer(telemetry.emitter(), make_record(retrievals=(step,)))

    span = telemetry.span("retrieval search")
    assert (span.start_time - STARTED, span.end_time - STARTED) == expected


def test_steps_keep_their_times_when_the_answers_were_not_noted(telemetry, make_record, answer, search):
    answer(telemetry.emitter(), make_record(started_ns=STARTED + SECOND, ended_ns=0, retrievals=(search,)))

    span = telemetry.span("retrieval search")
    assert (span.start_time, span.end_time) == (STARTED, STARTED + SECOND)
