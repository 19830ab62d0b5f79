"""Whose words leave the process: everything that is exported is searched for a word of each text."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from ragspan import RagRecord, ScoringEngine
from ragspan.config import Settings
from ragspan.defaults import engine_from
from ragspan.judges.judge_protocols import ClaimVerdict, ContextRating, Rating, Vote
from ragspan.judges.screen import OverlapJudge
from ragspan.messages import Message
from ragspan.metrics import (
    ChunkAttribution,
    ChunkUtilization,
    Completeness,
    ContextAdherence,
    ContextRelevance,
    ContextUtilization,
    Faithfulness,
)
from ragspan.outcomes import Score
from ragspan.records import Generation, Retrieval, RetrievedContext, SpanAnchor
from ragspan.telemetry.content import without_quotes

CONTENT_VARIABLES = ("RAGSPAN_CAPTURE_CONTENT", "RAGSPAN_EXPLANATIONS")
GENAI = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
TEXTS = ("Quezzle", "Qibble", "Pogglewood", "Zanzifer", "mary@example.com", "T0KEN")
EXCEPTION = "Excevort"
PROMPT = (Message(role="system", text="Qibble knows."), Message(role="user", text="When was Quezzle founded?"))
REPLY = Message(role="assistant", text="Zanzifer was founded.")
METRICS = [
    metric(OverlapJudge())
    for metric in (
        *(ContextAdherence, Completeness, ContextUtilization, Faithfulness),
        *(ContextRelevance, ChunkAttribution, ChunkUtilization),
    )
]


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch):
    for name in (*CONTENT_VARIABLES, GENAI, "OPENINFERENCE_HIDE_INPUTS", "OPENINFERENCE_HIDE_OUTPUTS"):
        monkeypatch.delenv(name, raising=False)


@dataclass
class Fails:
    """A metric of a user's whose exceptions quote what they were about."""

    name: str = "own"

    def score(self, record):
        raise ValueError(f"{EXCEPTION}: {record.response}")


def a_record(**given):
    passages = (RetrievedContext(text="Pogglewood was founded in 1612 by monks.", id="d1", rank=0),)
    answer = "Zanzifer was founded by Pogglewood in 1999. Monks founded it."
    fields = {
        "question": "When was Quezzle founded?",
        "contexts": passages,
        "response": answer,
        "user_id": "mary@example.com",
        "session_id": "session-1",
        "metadata": {"token": "T0KEN"},
        "retrievals": (Retrieval(name="store", query="Qibble", started_ns=1, ended_ns=2, contexts=passages),),
        "generations": (Generation(model="m", provider="p", started_ns=1, ended_ns=2, prompt=PROMPT, reply=REPLY),),
        "parent": SpanAnchor(trace_id=0xA1, span_id=0xB2),
    }
    return RagRecord(**{**fields, **given})


def exported(telemetry, emitter, *records):
    """All spans and all events as text, once what was submitted has been scored."""
    with ScoringEngine(metrics=[*METRICS, Fails()], emitters=[emitter], judging="thread") as engine:
        for record in records or (a_record(),):
            engine.submit(record)
        assert engine.flush(60)
    points = "".join(str(point.attributes) for point in telemetry.points("ragspan.score"))
    assert EXCEPTION not in points
    spans = "".join(span.to_json() for span in telemetry.spans)
    return spans, "".join(
        f"{event.event_name}{event.body}{dict(event.attributes)}" for event in telemetry.events
    ) + points


def found(text):
    return {canary for canary in (*TEXTS, EXCEPTION) if canary in text}


def from_environment(telemetry, **given):
    return telemetry.emitter(**{"capture_content": None, "explanations": None, **given})


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"RAGSPAN_CAPTURE_CONTENT": "false", GENAI: "SPAN_AND_EVENT"},
        {GENAI: "NO_CONTENT"},
        {"RAGSPAN_EXPLANATIONS": "false"},
        {"RAGSPAN_SPANS": "scores"},
    ],
)
def test_without_content_nothing_that_leaves_quotes_a_user(monkeypatch, telemetry, variables):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    spans, events = exported(telemetry, from_environment(telemetry, spans=Settings.from_environment().spans))

    assert (found(spans), found(events)) == (set(), set())
    assert "ragspan.score.faithfulness" in spans
    assert ("1 of 2 claims unsupported: sentence 1" in spans) is ("RAGSPAN_EXPLANATIONS" not in variables)


@pytest.mark.parametrize(
    ("value", "quoting"),
    [
        ("true", {"spans", "events"}),
        ("SPAN_AND_EVENT", {"spans", "events"}),
        ("SPAN_ONLY", {"spans"}),
        ("EVENT_ONLY", {"events"}),
    ],
)
def test_content_goes_where_opentelemetrys_own_switch_lets_it(monkeypatch, telemetry, value, quoting):
    monkeypatch.setenv(GENAI, value)
    spans, events = exported(telemetry, from_environment(telemetry))

    all_but_metadata = set(TEXTS) - {"T0KEN"}
    assert found(spans) == (all_but_metadata if "spans" in quoting else set())
    assert ("Zanzifer" in events) is ("events" in quoting)


def test_explanations_that_are_asked_for_keep_their_quotes_without_content(monkeypatch, telemetry):
    monkeypatch.setenv("RAGSPAN_EXPLANATIONS", "true")
    spans, events = exported(telemetry, from_environment(telemetry))

    assert "Zanzifer was founded" in spans
    assert "Zanzifer was founded" in events
    assert "mary@example.com" not in spans
    assert "Quezzle" not in spans


@pytest.mark.parametrize(
    ("variable", "hidden"),
    [
        ("OPENINFERENCE_HIDE_INPUTS", {"Quezzle", "Qibble"}),
        ("OPENINFERENCE_HIDE_INPUT_TEXT", {"Quezzle", "Qibble"}),
        ("OPENINFERENCE_HIDE_INPUT_MESSAGES", {"Quezzle", "Qibble"}),
        ("OPENINFERENCE_HIDE_OUTPUTS", {"Zanzifer", "Pogglewood"}),
        ("OPENINFERENCE_HIDE_OUTPUT_TEXT", {"Zanzifer"}),
        ("OPENINFERENCE_HIDE_OUTPUT_MESSAGES", {"Zanzifer"}),
        ("OPENINFERENCE_HIDE_RETRIEVAL_DOCUMENTS", set()),  # the response names the passage's word as well
    ],
)
def test_what_openinferences_variables_hide_stays_hidden(monkeypatch, telemetry, variable, hidden):
    monkeypatch.setenv(variable, "true")
    spans, _ = exported(telemetry, from_environment(telemetry, capture_content=True, explanations=False))

    shown = {"Quezzle", "Qibble", "Zanzifer", "Pogglewood"} - hidden
    assert found(spans) - {"mary@example.com"} == shown
    assert ("founded in 1612" in spans) is (variable not in _HIDE_DOCUMENTS)


_HIDE_DOCUMENTS = {"OPENINFERENCE_HIDE_OUTPUTS", "OPENINFERENCE_HIDE_RETRIEVAL_DOCUMENTS"}


@pytest.mark.parametrize("value", [None, "true", "false"])
def test_all_emitters_of_the_environment_have_one_policy(monkeypatch, value):
    monkeypatch.setenv("RAGSPAN_EMITTERS", "otel,phoenix,mlflow")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
    if value is not None:
        monkeypatch.setenv("RAGSPAN_EXPLANATIONS", value)
    engine = engine_from(Settings.from_environment())
    otel, phoenix, mlflow = engine._options.emitters

    policies = {(one.capture_content, one.explanations) for one in (otel, phoenix, mlflow)}
    assert policies == {(False, value and value == "true")}
    engine.shutdown(1)


CLAIMS = tuple(
    ClaimVerdict(index=index, verdict="supported" if supported else "unsupported", claim="quoted")
    for index, supported in enumerate([True, False, True, False, True])
)


@pytest.mark.parametrize(
    ("judge", "evidence", "explanation"),
    [
        ("overlap", CLAIMS, "2 of 5 claims unsupported: sentences 2 and 4"),
        ("openai:m", CLAIMS, "2 of 5 claims unsupported: claims 2 and 4"),
        ("openai:m", [Vote(grounded=True), Vote(grounded=False)], "1 of 2 votes find the response grounded"),
        ("openai:m", [Rating(value=0.25), Rating(value=1.0), Rating(value=0.5)], "ratings: 0.25, 1 and 0.5"),
        (
            "m",
            [ContextRating(index=2, value=1), ContextRating(index=0, value=0.5), ContextRating(index=1, value=0)],
            "2 of 3 contexts rated above 0: contexts 1 and 3",
        ),
        ("m", ["a sentence of mine"], None),
    ],
)
def test_an_explanation_without_quotes_gives_counts_and_places(judge, evidence, explanation):
    score = Score(value=0.5, explanation="quoted", judge=judge, evidence=tuple(evidence))

    assert without_quotes(score) == explanation
