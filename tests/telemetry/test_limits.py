"""What gives way when a span can hold no more attributes, and how much of a value, a document and a prompt it has."""

from __future__ import annotations

import json

import numpy as np
import pytest
from opentelemetry.sdk.trace import SpanLimits

from ragspan.judges.judge_protocols import ClaimVerdict
from ragspan.messages import Message, ToolRequest
from ragspan.outcomes import Score
from ragspan.records import Retrieval, RetrievedContext
from ragspan.telemetry.step_attributes import fitted
from ragspan.telemetry.values import bounded, clean_name, encodable, error_type, json_list, legible, well_formed


def outcomes(number):
    return {
        f"m{i:02}": Score(value=0.5, threshold=0.5, explanation="why", judge="gpt", details={"votes": 3, "spread": 0.1})
        for i in range(number)
    }


def kinds_of(span):
    """How many attributes of each kind the span has, the metric's name left out."""
    kept = [key.rpartition(".")[0] for key in span.attributes]
    return {kind: kept.count(kind) for kind in ("ragspan.score", "ragspan.label", "ragspan.explanation")}


def test_twelve_metrics_fit_without_losing_anything_that_matters(telemetry, make_record, answer):
    answer(telemetry.emitter(), make_record(), outcomes(12))

    span = telemetry.span("invoke_workflow rivers")
    assert span.dropped_attributes == 0
    assert len(span.attributes) <= 128
    assert span.attributes["openinference.span.kind"] == "CHAIN"
    assert kinds_of(span) == {"ragspan.score": 12, "ragspan.label": 12, "ragspan.explanation": 12}


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (40, {"ragspan.score": 12, "ragspan.label": 12, "ragspan.explanation": 7}),
        (12, {"ragspan.score": 6, "ragspan.label": 0, "ragspan.explanation": 0}),
    ],
)
def test_explanations_then_labels_then_scores_give_way(make_telemetry, make_record, answer, limit, expected):
    telemetry = make_telemetry(limits=SpanLimits(max_span_attributes=limit))
    answer(telemetry.emitter(), make_record(), outcomes(12))

    span = telemetry.span("invoke_workflow rivers")
    assert span.dropped_attributes == 0
    assert span.attributes["ragspan.record_id"] == "record-1"
    assert kinds_of(span) == expected


@pytest.mark.parametrize(
    ("value", "sent"),
    [
        ("a" * 8192, "a" * 8192),
        ("a" * 8193, "a" * 8191 + "…"),
        (2**63 - 1, 2**63 - 1),
        (2**63, None),
        (-(2**63), -(2**63)),
        (-(2**63) - 1, None),
        (True, True),
        (float("nan"), None),
        (float("-inf"), None),
        (np.float32(0.5), 0.5),
        (["a", 1, "b"], ("a", "b")),
        (("a",) * 51, ("a",) * 50),
        (["a" * 257], ("a" * 255 + "…",)),
        ({"a": 1}, None),
        (None, None),
        ("\ud800\0", "\ufffd\ufffd"),
    ],
    ids=lambda value: str(value)[:20].encode("ascii", "replace").decode(),
)
def test_a_value_is_sent_as_far_as_it_can_be(value, sent):
    assert encodable({"name": value}).get("name") == sent


def test_texts_are_cut_and_made_legible():
    assert (bounded("abc", 3), bounded("abcd", 3), clean_name("a" * 257)[-2:]) == ("abc", "ab…", "a…")
    assert (clean_name("é\0"), well_formed("\ud83d\ude00"), error_type(""), error_type("E")) == (
        "é\ufffd",
        "😀",
        "_OTHER",
        "E",
    )
    assert legible("a\r\nb\rc\x1b\u202e") == "a\nb\nc\ufffd\ufffd"
    assert json.loads(json_list(["a" * 98] * 100)) == ["a" * 98] * 80


ASKED = Message(role="user", text="q")
LONG = Message(role="user", text="a" * 5000)


@pytest.mark.parametrize(
    ("messages", "kept"),
    [
        ([], []),
        ([ASKED] * 21, [1] * 20),
        ([Message(role="system", text="system"), *[ASKED] * 25], [6, *[1] * 20]),
        ([Message(role="system", text="system"), *[ASKED] * 19], [6, *[1] * 19]),
        ([LONG], [4096]),
        ([LONG] * 2, [2048] * 2),
        ([LONG] * 3, [2048] * 3),
        ([LONG] * 20, [256] * 20),
        ([Message(role="user", text="\\" * 5000)] * 20, [128] * 20),
        ([Message(role="user", text="\x01" * 5000)] * 20, [128] * 9),
        ([Message(role="system", text="\x01" * 5000), *[Message(role="user", text="\x01" * 5000)] * 20], [128] * 9),
    ],
)
def test_of_a_prompt_the_first_instructions_and_the_last_messages_are_shown(messages, kept):
    fits = fitted(messages)

    assert [len(message.text) for message in fits] == kept
    assert [one.role for one in fits if one.role == "system"] == [
        one.role for one in messages[:1] if one.role == "system"
    ]


def test_arguments_of_calls_are_cut_as_texts_are():
    called = Message(role="assistant", text="", tool_requests=(ToolRequest(name="f", arguments="1" * 9000, id="c"),))

    (message,) = fitted([called])
    assert len(message.tool_requests[0].arguments) == 4096


@pytest.mark.parametrize(("shown", "documents"), [(True, 30), (False, 50)])
def test_how_many_documents_a_search_shows(telemetry, make_record, answer, shown, documents):
    contexts = [RetrievedContext(text="a" * 3000, score=1.0 if place else None) for place in range(60)]
    search = Retrieval(name="search", query="q", started_ns=1, ended_ns=2, contexts=tuple(contexts))
    answer(telemetry.emitter(capture_content=shown), make_record(retrievals=(search,)))

    span = telemetry.span("retrieval search")
    attributes = span.attributes
    assert span.dropped_attributes == 0
    names = [name for name in attributes if name.startswith("retrieval.documents.")]
    assert len({name.split(".")[2] for name in names}) == documents
    assert {len(attributes[name]) for name in names if name.endswith("content")} == ({2000} if shown else set())
    assert json.loads(attributes["gen_ai.retrieval.documents"]) == [{}, *[{"score": 1.0}] * 49]


def test_how_many_claims_a_score_shows_and_how_much_of_each(telemetry, make_record, answer):
    claims = tuple(
        ClaimVerdict(index=place, verdict="unsure", claim="b" * size, probability=0.12345)
        for place, size in enumerate([200, 201, *[3] * 60])
    )
    score = Score(value=0.5, evidence=claims)
    answer(telemetry.emitter(capture_content=True), make_record(), {"faithfulness": score})

    found = json.loads(telemetry.span("invoke_workflow rivers").attributes["ragspan.claims.faithfulness"])
    assert [len(one["claim"]) for one in found] == [200, 200, *[3] * 48]
    assert {one["probability"] for one in found} == {0.123}
    assert found[1]["claim"].endswith("b…")
