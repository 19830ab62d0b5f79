"""Records of spans that OpenInference's instrumentors wrote."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from recorded_spans import ANSWER, PASSAGES, QUESTION, load

from ragspan.records import RagRecord
from ragspan_receiver.readers import records_of
from ragspan_receiver.spans import TracedSpan


def only(spans: list[TracedSpan], **options: Any) -> RagRecord:
    (found,) = records_of(spans, **options)
    return found


def test_only_what_stands_in_the_prompt_counts() -> None:
    record = only(load("openinference_langchain"))

    assert [context.text for context in record.contexts or ()] == [PASSAGES[0]]
    assert [context.text for context in record.retrievals[0].contexts] == list(PASSAGES)


def test_llama_index_context_is_the_text_that_the_model_saw() -> None:
    first, _ = only(load("openinference_llama_index")).contexts or ()

    assert first.text == f"source: atlas\n\n{PASSAGES[0]}"
    assert (first.id, first.rank, first.score, first.source) == ("p0", 0, 0.9, "atlas")


def test_search_and_model_are_steps_with_their_spans_and_times() -> None:
    spans = load("openinference_llama_index")
    record = only(spans)
    search = next(span for span in spans if span.name.endswith(".retrieve"))

    (retrieval,) = record.retrievals
    assert retrieval.query == QUESTION
    assert retrieval.span is not None
    assert retrieval.span.span_id == int(search.span_id, 16)
    assert (retrieval.started_ns, retrieval.ended_ns) == (search.start_ns, search.end_ns)
    (generation,) = record.generations
    assert generation.model == "scripted"
    assert generation.reply is not None
    assert generation.reply.text == ANSWER


def test_session_and_tags_are_kept() -> None:
    spans = load("openinference_langchain")
    spans = [replace(span, attributes={**span.attributes, "user.id": "u-1"}) for span in spans]
    record = only(spans)

    assert (record.session_id, record.user_id) == ("s-1", "u-1")


def web_request(trace_id: str) -> TracedSpan:
    return TracedSpan(trace_id=trace_id, span_id="ff" * 8, parent_id=None, name="POST /ask", start_ns=0, end_ns=1)


def test_request_under_a_span_of_the_application_is_one_record() -> None:
    spans = load("openinference_langchain")
    outer = web_request(spans[0].trace_id)
    inner = [replace(span, parent_id=outer.span_id) if span.parent_id is None else span for span in spans]

    assert only([*inner, outer]).question == QUESTION


def test_missing_root_leaves_a_record_of_what_came() -> None:
    spans = [span for span in load("openinference_llama_index") if span.parent_id is not None]

    assert only(spans).response == ANSWER


@pytest.mark.parametrize("kind", ["RETRIEVER", "LLM", "TOOL", "EMBEDDING", "EVALUATOR"])
def test_bare_step_is_no_answer(kind: str) -> None:
    spans = load("openinference_langchain")
    bare = [replace(span, parent_id=None) for span in spans if span.attributes["openinference.span.kind"] == kind]

    assert records_of(bare) == []


def left_early(span: TracedSpan) -> TracedSpan:
    return replace(span, attributes={**span.attributes, "output.value": "Every"}) if span.parent_id is None else span


def test_stream_whose_model_ended_behind_the_request_was_left() -> None:
    spans = [left_early(span) for span in load("openinference_langchain")]
    last = max(span.end_ns for span in spans)
    late = [
        replace(span, end_ns=last + 1) if span.attributes["openinference.span.kind"] == "LLM" else span
        for span in spans
    ]
    record = only(late)

    assert (record.status, record.response) == ("aborted", "Every")
    assert [context.text for context in record.contexts or ()] == [PASSAGES[0]]


def test_contexts_are_unknown_where_documents_are_ids() -> None:
    spans = load("openinference_llama_index")
    shown = ("id", "score")
    hidden = [
        replace(
            span,
            attributes={
                key: "REDACTED" if key.startswith("llm.") and key.endswith("content") else value
                for key, value in span.attributes.items()
                if "retrieval.documents" not in key or key.endswith(shown)
                if "text_chunks" not in str(value)
            },
        )
        for span in spans
    ]

    assert only(hidden).contexts is None


@pytest.mark.parametrize(
    ("framework", "name", "given"),
    [
        ("langchain", {"tool.name": "lookup"}, QUESTION),
        ("dspy", {}, json.dumps({"query": QUESTION})),
        ("smolagents", {"tool.name": "lookup"}, json.dumps({"args": [], "sane": True, "kwargs": {"query": QUESTION}})),
    ],
)
def test_named_tools_are_searches(framework: str, name: dict[str, str], given: str) -> None:
    spans = load("openinference_langchain")
    changed = [
        replace(
            span,
            name="lookup.__call__",
            scope=f"openinference.instrumentation.{framework}",
            attributes=name | {"openinference.span.kind": "TOOL", "input.value": given, "output.value": PASSAGES[0]},
        )
        if span.attributes["openinference.span.kind"] == "RETRIEVER"
        else span
        for span in spans
    ]

    assert only(changed).retrievals == ()
    record = only(changed, retrieval_tools=["lookup"])
    assert [context.text for context in record.contexts or ()] == [PASSAGES[0]]
    assert record.retrievals[0].query == QUESTION


def test_a_model_whose_words_no_span_shows_may_have_said_the_answer() -> None:
    spans = load("openinference_langchain")
    silent = [
        replace(span, attributes={"openinference.span.kind": "LLM"})
        if span.attributes["openinference.span.kind"] == "LLM"
        else span
        for span in spans
    ]

    record = only(silent)
    assert (record.response, record.from_model, record.contexts_unknown) == (ANSWER, None, "unseen_prompt")
