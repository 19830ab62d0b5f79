"""What a score says in Langfuse, and where the writer finds its server."""

from __future__ import annotations

import pytest

from ragspan.outcomes import Score
from ragspan.tools.langfuse import LangfuseEmitter
from ragspan.usage import Usage


@pytest.fixture
def written(server, deliver, make_scored):
    """The scores that Langfuse has after these outcomes were emitted, by name."""

    def write(outcomes=None, **options):
        deliver(make_scored(outcomes), **options)
        return {score["name"]: score for score in server.stored.values()}

    return write


def test_a_score_is_on_the_answers_observation_with_all_that_is_known(monkeypatch, written):
    monkeypatch.setenv("LANGFUSE_TRACING_ENVIRONMENT", "staging")
    score = Score(
        value=0.25,
        threshold=0.5,
        explanation="two claims are made up",
        judge="openai:gpt-4o-mini",
        usage=Usage(requests=2, input_tokens=10, output_tokens=3, usd=0.01),
    )

    found = written({"faithfulness": score}, explanations=True)["faithfulness"]

    assert (found["traceId"], found["observationId"]) == ("0" * 30 + "a1", "0" * 14 + "b2")
    assert (found["value"], found["dataType"], found["comment"]) == (0.25, "NUMERIC", "two claims are made up")
    assert found["timestamp"] == "2025-11-23T12:13:20.123000+00:00"
    assert found["environment"] == "staging"
    assert found["metadata"]["label"] == "fail"
    assert found["metadata"]["usage"] == {"requests": 2, "input_tokens": 10, "output_tokens": 3, "usd": 0.01}
    assert found["metadata"]["record_id"] == "record-1"


def test_a_score_can_be_of_the_whole_trace(written):
    found = written(level="trace")["faithfulness"]

    assert found["traceId"] == "0" * 30 + "a1"
    assert "observationId" not in found


def test_the_same_answer_has_the_same_ids_in_all_processes(written):
    assert written()["faithfulness"]["id"] == "eb94f9f8248d08c9c74bda39859ecc06"


@pytest.mark.parametrize(
    ("environment", "address"),
    [
        ({}, "https://cloud.langfuse.com"),
        ({"LANGFUSE_HOST": "https://us.cloud.langfuse.com/"}, "https://us.cloud.langfuse.com"),
        ({"LANGFUSE_HOST": "http://old", "LANGFUSE_BASE_URL": "http://langfuse:3000"}, "http://langfuse:3000"),
    ],
)
def test_address_and_keys_are_those_of_langfuses_own_client(monkeypatch, environment, address):
    for name, value in {**environment, "LANGFUSE_PUBLIC_KEY": "pk", "LANGFUSE_SECRET_KEY": "sk"}.items():
        monkeypatch.setenv(name, value)

    endpoint = LangfuseEmitter().client.endpoint

    assert (endpoint.url, endpoint.headers) == (address, {"authorization": "Basic cGs6c2s="})
