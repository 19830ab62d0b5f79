"""The names are those of the conventions' own packages, and documented."""

from __future__ import annotations

import json
import re
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
from ragspan.telemetry.otel_emitter import ANSWER_KINDS
from ragspan.telemetry.step_attributes import KINDS

ROOT = Path(__file__).parents[2]
DOCUMENTATION = (ROOT / "docs" / "attributes.md").read_text(encoding="utf-8")
SOURCE = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "src/ragspan/telemetry").glob("*.py"))
_FIRST = (
    r"ragspan(?!\.receiver)|gen_ai|llm|reranker|retrieval|tool|agent|tag|input|output|openinference"
    "|session|user|exception|error|log"
)
NAMES = sorted({found[1] for found in re.finditer(rf'"((?:{_FIRST})\.[a-z_.]+)["{{]', SOURCE)})
"""What stands in the source as the name of an attribute, an event or a metric; of names with variable parts their beginnings."""
NOT_IN_THE_PACKAGE = {"gen_ai.retrieval.top_k": "renamed since", "gen_ai.evaluation.result": "an event's name"}


def of_opentelemetry():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they are deprecated because they moved
        from opentelemetry.semconv._incubating.attributes import gen_ai_attributes
    return {value for name, value in vars(gen_ai_attributes).items() if name.isupper() and isinstance(value, str)}


def of_openinference():
    kinds = (SpanAttributes, MessageAttributes, ToolCallAttributes, ToolAttributes, RerankerAttributes)
    return {value for kind in kinds for name, value in vars(kind).items() if isinstance(value, str)}


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("gen_ai.")])
def test_a_name_for_generative_ai_is_opentelemetrys(name):
    assert (name in of_opentelemetry()) is (name not in NOT_IN_THE_PACKAGE)


OPENINFERENCES = ("llm.", "reranker.", "retrieval.", "tool.", "agent.", "tag.", "input.", "output.", "openinf")


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith(OPENINFERENCES)])
def test_a_name_of_openinference_is_in_its_package(name):
    assert name in of_openinference()


def test_the_fields_of_openinferences_lists_are_those_of_its_package():
    answers = json.loads(Path(__file__).with_name("whole_answer.json").read_text(encoding="utf-8"))
    spans = answers["with content"]["spans"].values()
    whole = {re.sub(r"\.\d+\.", ".", name) for span in spans for name in span["attributes"]}
    documents = {DocumentAttributes.DOCUMENT_ID, DocumentAttributes.DOCUMENT_SCORE, DocumentAttributes.DOCUMENT_CONTENT}
    calls = f"{SpanAttributes.LLM_INPUT_MESSAGES}.{MessageAttributes.MESSAGE_TOOL_CALLS}"
    expected = {
        *(f"{RerankerAttributes.RERANKER_INPUT_DOCUMENTS}.{name}" for name in documents),
        f"{SpanAttributes.LLM_INPUT_MESSAGES}.{MessageAttributes.MESSAGE_TOOL_CALL_ID}",
        f"{calls}.{ToolCallAttributes.TOOL_CALL_FUNCTION_ARGUMENTS_JSON}",
    }

    assert expected - whole == set()


@pytest.mark.parametrize("kind", ["EVALUATOR", *(kind[1] for kind in (*ANSWER_KINDS.values(), *KINDS.values()))])
def test_a_kind_is_one_of_openinferences(kind):
    assert kind in {value.value for value in OpenInferenceSpanKindValues}


def test_the_scope_tells_its_schema(telemetry, make_record, answer):
    answer(telemetry.emitter(), make_record())

    assert {span.instrumentation_scope.schema_url for span in telemetry.spans} == {
        "https://opentelemetry.io/schemas/gen-ai-dev/1.42.0-dev"
    }


@pytest.mark.parametrize("name", NAMES)
def test_every_name_is_documented(name):
    ends = ["<metric>`", "<metric>.<name>`", "<name>`"] if name.endswith(".") else ["`", ".<i>."]
    assert any(f"`{name}{end}" in DOCUMENTATION for end in ends)


def test_every_name_that_is_documented_is_written():
    documented = re.findall(r"`([a-z_]+\.[a-z_.]*[a-z])\.?[<`]", DOCUMENTATION)

    assert [name for name in documented if f'"{name}' not in SOURCE] == []


def test_every_reason_for_a_drop_is_documented():
    documentation = (ROOT / "docs" / "production.md").read_text(encoding="utf-8")
    missing = [reason for reason in get_args(DropReason) if f"`{reason}`" not in documentation]

    assert missing == []
