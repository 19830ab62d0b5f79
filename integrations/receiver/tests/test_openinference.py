"""Records of spans that OpenInference's instrumentors wrote."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from recorded_spans import ANSWER, PASSAGES, QUESTION, load, only, records_of


@pytest.mark.parametrize("convention", ["openinference", "traceloop", "langsmith", "langfuse"])
def test_instructions_of_a_prompt_template_in_the_message_with_the_documents_are_no_evidence(convention: str) -> None:
    instructions = "You are the assistant of Globex, which runs 500 stores in Denmark. Context:"
    spans = [
        replace(
            span,
            attributes={key: str(value).replace("Context:", instructions) for key, value in span.attributes.items()},
        )
        for span in load(f"{convention}_langchain")
    ]

    record = only(spans)

    assert [context.text for context in record.contexts or ()] == [PASSAGES[0]]
    assert record.background == ()


def test_request_under_a_span_of_the_application_is_one_record() -> None:
    spans = load("openinference_langchain")
    outer = replace(spans[0], span_id="ff" * 8, parent_id=None, name="POST /ask", start_ns=0, end_ns=1, attributes={})
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


def test_contexts_are_unknown_where_documents_are_ids() -> None:
    spans = load("openinference_llama_index")
    hidden = [
        replace(
            span,
            attributes={
                key: "REDACTED" if key.startswith("llm.") and key.endswith("content") else value
                for key, value in span.attributes.items()
                if "retrieval.documents" not in key or key.endswith(("id", "score"))
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
