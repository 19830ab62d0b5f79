"""What is in a judge's options, headers and keys stays between ragspan and the endpoint."""

from __future__ import annotations

import json
import logging

import pytest
from fakes import InMemoryTelemetry

from ragspan import RagRecord, ScoringEngine
from ragspan.config import Settings
from ragspan.doctor.examination import examine
from ragspan.metrics.metric_catalogue import metrics_from
from ragspan.telemetry import OTelEmitter

KEY, HEADER, FIELD = "sk-key-0123456789", "header-0123456789", "field-0123456789"
SECRETS = (KEY, HEADER, FIELD)
OPTIONS = {
    "api_key": KEY,
    "extra_headers": {"x-team": f"Team {HEADER}"},
    "extra_body": {"team": FIELD},
    "max_retries": 0,
}
RECORD = RagRecord(question="When?", contexts=["Beta settles at night."], response="At night.")


@pytest.fixture
def settings(fake_openai, monkeypatch):
    monkeypatch.setenv("RAGSPAN_JUDGE", "openai:m")
    monkeypatch.setenv("RAGSPAN_JUDGE_OPTIONS", json.dumps({"base_url": fake_openai.base_url, **OPTIONS}))
    monkeypatch.setenv("RAGSPAN_METRICS", "context_adherence")
    return Settings.from_environment()


def echoing(fake_openai, status):
    """An endpoint that refuses and repeats all that it got."""

    def answer(request):
        return fake_openai.fails(status, f"not with {json.dumps(fake_openai.headers[-1])} and {json.dumps(request)}")

    fake_openai.answer = answer


def test_they_are_in_no_log_no_span_and_no_text_of_an_object(settings, fake_openai, caplog):
    echoing(fake_openai, 401)
    telemetry = InMemoryTelemetry()
    caplog.set_level(logging.DEBUG)
    metrics = metrics_from(settings)

    with ScoringEngine(
        metrics=metrics, emitters=[OTelEmitter(tracer_provider=telemetry.tracer_provider)], judging="thread"
    ) as engine:
        engine.submit(RECORD)
        assert engine.flush(30)

    assert fake_openai.headers[0]["x-team"] == f"Team {HEADER}"
    assert fake_openai.headers[0]["authorization"] == f"Bearer {KEY}"
    assert fake_openai.requests[0]["team"] == FIELD
    [span] = telemetry.spans()
    texts = [
        caplog.text,
        span.to_json(),
        repr(settings),
        repr(metrics),
        str(metrics[0].judge),
        repr(metrics[0].judge.client),
    ]
    assert span.attributes["ragspan.error.context_adherence"]
    assert [(secret, text) for secret in SECRETS for text in texts if secret in text] == []


def test_the_doctor_shows_none_of_them(settings, fake_openai, monkeypatch):
    echoing(fake_openai, 400)
    monkeypatch.setenv("RAGSPAN_JUDGING", "thread")

    told = "\n".join(f"{one.found} {one.advice}" for one in examine(timeout=20))

    assert "RAGSPAN_JUDGE_OPTIONS=(set)" in told
    assert [secret for secret in SECRETS if secret in told] == []
