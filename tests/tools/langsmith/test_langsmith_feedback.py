"""What feedback says in LangSmith, which run it is on, and where the writer finds its server."""

from __future__ import annotations

import uuid

import langsmith
import pytest
from langsmith.integrations.otel import langsmith_run_id_from_otel_span_id

from ragspan.outcomes import Score
from ragspan.tools.langsmith import LangSmithEmitter

TRACED = "0198c7a1-7b3c-7000-8000-00000000000f"


@pytest.fixture
def client(server):
    """LangSmith's own client, which reads what we wrote."""
    return langsmith.Client(api_url=server.url, api_key="ls-secret", auto_batch_tracing=False)


def test_langsmiths_own_client_reads_the_feedback(server, client, deliver, make_scored):
    score = Score(value=0.25, threshold=0.5, explanation="two claims are made up", judge="openai:gpt-4o-mini")
    deliver(
        make_scored({"faithfulness": score, "completeness": Score(value=1.0, judge="overlap")}),
        explanations=True,
        project="support",
    )

    run_id = langsmith_run_id_from_otel_span_id(0xB2)
    found = {feedback.key: feedback for feedback in client.list_feedback(run_ids=[run_id])}

    assert set(found) == {"faithfulness", "completeness"}
    faithfulness = found["faithfulness"]
    assert (faithfulness.run_id, str(faithfulness.session_id)) == (run_id, server.projects["support"])
    assert (faithfulness.score, faithfulness.value, faithfulness.comment) == (0.25, "fail", "two claims are made up")
    assert {key: feedback.feedback_source.type for key, feedback in found.items()} == {
        "faithfulness": "model",
        "completeness": "api",
    }
    assert faithfulness.feedback_source.metadata["record_id"] == "record-1"


@pytest.mark.parametrize("tracing", ["LANGSMITH_TRACING", "LANGCHAIN_TRACING_V2"])
def test_with_langsmiths_own_tracer_the_run_is_the_tracers_and_no_span_is_needed(
    server, monkeypatch, deliver, make_scored, tracing
):
    server.runs = {TRACED}
    monkeypatch.setenv(tracing, "true")
    deliver(make_scored(run_id=TRACED, span=None))

    assert [feedback["run_id"] for feedback in server.feedback.values()] == [TRACED]


def test_spans_count_where_spans_are_sent_or_langchain_has_no_run(server, monkeypatch, deliver, make_scored):
    for number, (traced, run_id) in enumerate([("false", TRACED), ("true", None), ("true", "no UUID")]):
        monkeypatch.setenv("LANGSMITH_TRACING", traced)
        deliver(make_scored(run_id=run_id, record_id=f"record-{number}"))

    assert {uuid.UUID(feedback["run_id"]).int for feedback in server.feedback.values()} == {0xB2}
    assert server.number_of_scores == 3


def test_address_and_key_are_those_of_langsmiths_own_client(monkeypatch):
    monkeypatch.setenv("LANGCHAIN_API_KEY", "key")
    writer = LangSmithEmitter()
    assert (writer.client.endpoint.url, writer.client.endpoint.headers) == (
        "https://api.smith.langchain.com",
        {"x-api-key": "key"},
    )

    monkeypatch.setenv("LANGSMITH_API_KEY", "own")
    monkeypatch.setenv("LANGSMITH_ENDPOINT", "https://eu.api.smith.langchain.com/")
    monkeypatch.setenv("LANGSMITH_WORKSPACE_ID", "w")
    monkeypatch.setenv("LANGSMITH_PROJECT", "support")
    writer = LangSmithEmitter()
    assert writer.client.endpoint.url == "https://eu.api.smith.langchain.com"
    assert writer.client.endpoint.headers == {"x-api-key": "own", "x-tenant-id": "w"}
    assert writer._project == "support"
