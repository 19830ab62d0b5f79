"""LangChain's chat models as judges by their name."""

from __future__ import annotations

import json

import pytest
from fakes import InMemoryTelemetry
from opentelemetry import trace

import ragspan
from ragspan import ConfigurationError, RagRecord
from ragspan.config import Settings
from ragspan.judges import named_judge
from ragspan.metrics.metric_catalogue import metrics_from
from ragspan.testing import RecordingEmitter
from ragspan_langchain import RagspanLangChainInstrumentor

KEY = "sk-test-0123456789"
GROUNDED = json.dumps({"answer": {"grounding": {"reasoning": "stated", "verdict": "grounded"}}})
RECORD = RagRecord(question="When?", contexts=["Beta settles at night."], response="At night.")


@pytest.fixture
def settings(fake_openai, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    fake_openai.answer = lambda _: fake_openai.says(GROUNDED)
    return Settings.from_environment(
        {
            "RAGSPAN_JUDGE": "langchain:openai:gpt-test",
            "RAGSPAN_JUDGE_BASE_URL": fake_openai.base_url,
            "RAGSPAN_JUDGE_OPTIONS": '{"max_retries": 0, "temperature": 0.3, "price": [1, 2]}',
            "RAGSPAN_METRICS": "context_adherence",
        }
    )


def test_a_name_of_init_chat_model_judges_and_its_calls_are_no_requests_of_the_application(settings, fake_openai):
    emitter, telemetry = RecordingEmitter(score_wait=30), InMemoryTelemetry()
    [metric] = metrics_from(settings)
    with ragspan.ScoringEngine(metrics=[metric], emitters=[emitter], judging="thread") as engine:
        RagspanLangChainInstrumentor().instrument(sink=engine)
        try:
            with trace.use_span(telemetry.tracer_provider.get_tracer("application").start_span("request")):
                engine.submit(RECORD)
                assert engine.flush(30)
        finally:
            RagspanLangChainInstrumentor().uninstrument()

    assert [scored.record.question for scored in emitter.scored] == ["When?"]
    score = emitter.scored[0].outcomes["context_adherence"]
    assert (score.value, score.judge) == (1.0, "langchain:openai:gpt-test")
    assert {request["model"] for request in fake_openai.requests} == {"gpt-test"}
    assert {request["temperature"] for request in fake_openai.requests} == {0.3}
    assert len(fake_openai.requests) == 3
    assert [span.name for span in telemetry.spans()] in ([], ["request"])


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "langchain",
            "'langchain:' names no model: the judge should be like 'langchain:google_vertexai:gemini-2.5-flash'",
        ),
        ("langchain:nobody:model", "the judge 'langchain:nobody:model' cannot be made: .*model provider"),
        ("langchain:anthropic:claude-haiku-4-5", ".*pip install langchain-anthropic"),
    ],
)
def test_a_name_that_makes_no_model_says_why(name, message):
    with pytest.raises(ConfigurationError, match=f"^{message}"):
        named_judge(name)


def test_an_argument_that_the_model_does_not_take_is_an_error_without_its_value():
    with pytest.raises(ConfigurationError) as refusal:
        named_judge(
            "langchain:openai:gpt-test", api_key=KEY, timeout={"sk-long-secret": "sk-long-secret"}, n="sk-long-n"
        )

    assert "sk-" not in str(refusal.value)
