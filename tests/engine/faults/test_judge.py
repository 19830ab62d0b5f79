"""A judge in trouble: the real client, a real endpoint, and what becomes of an answer's four scores."""

from __future__ import annotations

import functools
import json
import logging
import ssl
from dataclasses import dataclass

import pytest
import trustme

from ragspan.judges import OpenAIJudge
from ragspan.metrics import Completeness, ContextAdherence, ContextUtilization, Faithfulness
from ragspan.telemetry import OTelEmitter
from ragspan.testing import InMemoryTelemetry

METRICS = ["context_adherence", "completeness", "context_utilization", "faithfulness"]
KEY = "sk-test-0123456789"

SECRETS = ["the question of a user", "the passage of a document", "the response to a user", KEY]
QUESTION, PASSAGE, RESPONSE, _ = SECRETS

BEST_MARKS = {
    "grounding": {"reasoning": "stated", "verdict": "grounded"},
    "completeness": {"reasoning": "all there", "value": 1},
    "claims": ["It is stated."],
    "claim_verdicts": [{"number": 1, "reasoning": "stated", "verdict": "supported"}],
    "context_verdicts": [{"number": 1, "reasoning": "quoted", "verdict": "useful"}],
    "judged_claims": {
        "claims": [{"claim": "It is stated.", "reasoning": "stated", "verdict": "supported"}],
        "more": False,
    },
}


def gives_best_marks(endpoint, request):
    parts = endpoint.parts(request) or [endpoint.question(request)]
    count = endpoint.choices_per_request or request.get("n", 1)
    text = json.dumps({"answer": {part: BEST_MARKS[part] for part in parts}})
    return endpoint.says(*[text] * count)


def complains(endpoint, request, *, status, about="", code=None):
    """An error that quotes the prompt, as some servers do."""
    return endpoint.fails(status, f"{about} {request['messages'][-1]['content']} {KEY}", code=code)


def says(endpoint, request, *, text="{}", **about):
    return endpoint.says(*[text] * request.get("n", 1), **about)


@dataclass(frozen=True, kw_only=True)
class Fault:
    """How an endpoint fails, and what the four scores' errors are called then."""

    reply: object = gives_best_marks
    error_type: str


FAULTS = {
    "429 without Retry-After": Fault(reply=functools.partial(complains, status=429), error_type="RateLimitError"),
    "hang": Fault(reply=lambda endpoint, _: endpoint.hangs(), error_type="APITimeoutError"),
    "verdicts that are no JSON": Fault(
        reply=functools.partial(says, text="It is grounded."), error_type="InvalidVerdict"
    ),
    "the context length": Fault(
        reply=functools.partial(
            complains, status=400, about="This model's maximum context length is 8192.", code="context_length_exceeded"
        ),
        error_type="BadRequestError",
    ),
}


@pytest.fixture
def judged(fakes, make_engine, caplog):
    """Scores one answer after another with all four metrics; returns the attributes of its span."""
    caplog.set_level(logging.DEBUG, logger="ragspan")
    telemetry = InMemoryTelemetry()
    engines = []

    def judge(endpoint, *, max_retries=0, timeout=fakes.PATIENCE, **options):
        if not engines:
            judge = OpenAIJudge(
                "test-model", base_url=endpoint.base_url, api_key=KEY, timeout=timeout, max_retries=max_retries
            )
            metrics = [
                ContextAdherence(judge, polls=3),
                Completeness(judge, polls=3),
                ContextUtilization(judge),
                Faithfulness(judge),
            ]
            emitter = OTelEmitter(tracer_provider=telemetry.tracer_provider, meter_provider=telemetry.meter_provider)
            engines.append(
                make_engine(*metrics, emitters=[emitter], meter_provider=telemetry.meter_provider, **options)
            )
        [engine] = engines
        before = len(telemetry.spans())
        fakes.score(engine, fakes.a_record(question=QUESTION, contexts=[PASSAGE], response=RESPONSE))
        (span,) = telemetry.spans()[before:]
        assert [secret for secret in SECRETS if secret in span.to_json() + caplog.text] == []
        return engine, dict(span.attributes)

    return judge


def found(attributes, kind):
    """What the span says of that kind, by metric."""
    prefix = f"ragspan.{kind}."
    return {
        name.removeprefix(prefix): value
        for name, value in attributes.items()
        if name.startswith(prefix) and name.removeprefix(prefix) in METRICS
    }


@pytest.mark.parametrize("name", FAULTS)
def test_a_judge_in_trouble_costs_the_scores_of_that_answer_and_nothing_else(
    fake_openai, judged, assert_conserved, name
):
    fault = FAULTS[name]
    fake_openai.answer = functools.partial(fault.reply, fake_openai)

    engine, in_trouble = judged(fake_openai, timeout=0.5 if name == "hang" else 20)

    assert found(in_trouble, "error") == dict.fromkeys(METRICS, fault.error_type)
    assert found(in_trouble, "score") == {}
    stats = assert_conserved(engine)
    assert (stats.finished, stats.errors, stats.dropped) == (1, {"metric": 4}, {})

    fake_openai.answer = functools.partial(gives_best_marks, fake_openai)
    _, well_again = judged(fake_openai)

    assert found(well_again, "score") == dict.fromkeys(METRICS, 1.0)
    assert found(well_again, "error") == {}


@pytest.fixture
def endpoint_of_its_own(fake_openai):
    """Makes endpoints of the kind of `fake_openai` with other connections."""
    made = []

    def make(**options):
        made.append(type(fake_openai)(**options))
        made[-1].answer = functools.partial(gives_best_marks, made[-1])
        return made[-1]

    yield make
    for endpoint in made:
        endpoint.close()
        assert not endpoint.troubles


def test_a_judge_with_a_certificate_of_another_host_is_not_told_anything(
    endpoint_of_its_own, judged, monkeypatch, tmp_path
):
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "authority.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("elsewhere.example").configure_cert(tls)
    endpoint = endpoint_of_its_own(tls=tls)

    _, in_trouble = judged(endpoint)
    assert found(in_trouble, "error") == dict.fromkeys(METRICS, "APIConnectionError")
    assert endpoint.requests == []

    authority.issue_cert("127.0.0.1").configure_cert(tls)
    _, well_again = judged(endpoint)
    assert found(well_again, "score") == dict.fromkeys(METRICS, 1.0)


@pytest.mark.parametrize("retry_after", ["20"])
def test_the_time_of_a_metric_ends_the_retries_of_its_judge(fake_openai, judged, retry_after):
    fake_openai.answer = functools.partial(complains, fake_openai, status=429)
    fake_openai.reply_headers = {"Retry-After": retry_after} if retry_after else {}

    _, attributes = judged(fake_openai, max_retries=1000, metric_timeout=0.4)

    assert found(attributes, "error") == dict.fromkeys(METRICS, "timeout")
