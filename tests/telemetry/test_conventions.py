"""The names are those of the conventions' own packages, and documented."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import get_args

import pytest
from openinference.semconv.trace import (
    DocumentAttributes,
    MessageAttributes,
    OpenInferenceSpanKindValues,
    RerankerAttributes,
    SpanAttributes,
    ToolAttributes,
    ToolCallAttributes,
)

from ragspan.engine import DropReason
from ragspan.telemetry import semconv

NAMES = {name: value for name, value in vars(semconv).items() if name.isupper() and isinstance(value, str)}
NOT_IN_THE_PACKAGE = {"gen_ai.retrieval.top_k": "renamed since", "gen_ai.evaluation.result": "an event's name"}


def of_opentelemetry():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they are deprecated because they moved
        from opentelemetry.semconv._incubating.attributes import gen_ai_attributes
    return {value for name, value in vars(gen_ai_attributes).items() if name.isupper() and isinstance(value, str)}


def of_openinference():
    kinds = (SpanAttributes, MessageAttributes, ToolCallAttributes, ToolAttributes, RerankerAttributes)
    return {value for kind in kinds for name, value in vars(kind).items() if isinstance(value, str)}


@pytest.mark.parametrize("name", sorted(value for value in NAMES.values() if value.startswith("gen_ai.")))
def test_a_name_for_generative_ai_is_opentelemetrys(name):
    assert (name in of_opentelemetry()) is (name not in NOT_IN_THE_PACKAGE)


@pytest.mark.parametrize(
    "name",
    sorted(
        value
        for value in NAMES.values()
        if value.startswith(("llm.", "reranker.", "tool.", "agent.", "tag.", "input.", "output.", "openinference."))
    ),
)
def test_a_name_of_openinference_is_in_its_package(name):
    assert name in of_openinference()


@pytest.mark.parametrize("kind", [value for name, value in NAMES.items() if name.startswith("KIND_")])
def test_a_kind_is_one_of_openinferences(kind):
    assert kind in {value.value for value in OpenInferenceSpanKindValues}


def test_names_in_lists_are_openinferences():
    assert semconv.EVALUATION_NAME.startswith(f"{SpanAttributes.EVALUATIONS}.{{}}.")
    call = f"{SpanAttributes.LLM_INPUT_MESSAGES}.2.{MessageAttributes.MESSAGE_TOOL_CALLS}.1."
    assert semconv.TOOL_CALL_ARGUMENTS.format(semconv.LLM_INPUT_MESSAGES, 2, 1) == (
        call + ToolCallAttributes.TOOL_CALL_FUNCTION_ARGUMENTS_JSON
    )
    assert semconv.MESSAGE_TOOL_CALL_ID.format(semconv.LLM_OUTPUT_MESSAGES, 0) == (
        f"{SpanAttributes.LLM_OUTPUT_MESSAGES}.0.{MessageAttributes.MESSAGE_TOOL_CALL_ID}"
    )
    assert semconv.DOCUMENT_SCORE.format(semconv.RERANKER_INPUT_DOCUMENTS, 3) == (
        f"{RerankerAttributes.RERANKER_INPUT_DOCUMENTS}.3.{DocumentAttributes.DOCUMENT_SCORE}"
    )


def test_the_scope_tells_its_schema(telemetry, make_record, answer):
    answer(telemetry.emitter(), make_record())

    assert {span.instrumentation_scope.schema_url for span in telemetry.spans} == {
        "https://opentelemetry.io/schemas/gen-ai-dev/1.42.0-dev"
    }


DOCS = Path(__file__).parents[2] / "docs"
DOCUMENTATION = (DOCS / "attributes.md").read_text(encoding="utf-8")
CONSTANTS = sorted({value for name, value in vars(semconv).items() if name.isupper() and isinstance(value, str)})


@pytest.mark.parametrize("name", [name for name in CONSTANTS if "." in name and "{}" not in name])
def test_every_name_is_documented(name):
    ends = ["<metric>`", "<metric>.<name>`", "<name>`"] if name.endswith(".") else ["`", ".<i>."]
    assert any(f"`{name}{end}" in DOCUMENTATION for end in ends)


def test_every_reason_for_a_drop_is_documented():
    documentation = (DOCS / "production.md").read_text(encoding="utf-8")
    missing = [reason for reason in get_args(DropReason) if f"`{reason}`" not in documentation]

    assert missing == []
