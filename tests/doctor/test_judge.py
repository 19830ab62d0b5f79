import json
import ssl

import pytest
import trustme

from ragspan import Settings
from ragspan.doctor.judge import ask_judge

KEY = "sk-test-0123456789"
GROUNDED = json.dumps({"answer": {"grounding": {"reasoning": "It says so.", "verdict": "grounded"}}})
PRICED = {"prompt_tokens": 300, "completion_tokens": 20, "total_tokens": 320}


def asked(base_url, *, seconds=20.0):
    [finding] = ask_judge(Settings(judge="openai:tiny", judge_base_url=base_url, judge_api_key=KEY), seconds)
    return finding


def test_the_embedded_judge_answers_at_once():
    [finding] = ask_judge(Settings(), 20.0)

    assert finding.state == "ok"
    assert finding.facts["judge"] == "overlap"
    assert finding.facts["grounded"] is True


def test_a_language_model_is_asked_one_question_and_its_tokens_are_told(fake_openai):
    fake_openai.answer = lambda _request: fake_openai.says(GROUNDED, usage=PRICED)

    finding = asked(fake_openai.base_url)

    assert finding.state == "ok"
    assert "openai:tiny answered in " in finding.found
    assert "300 tokens in, 20 out, price unknown" in finding.found
    assert finding.facts["input_tokens"] == 300
    assert len(fake_openai.requests) == 1


def test_a_judge_that_denies_what_is_plain_is_a_warning(fake_openai):
    fake_openai.answer = lambda _request: fake_openai.says(GROUNDED.replace('"grounded"', '"not_grounded"'))

    finding = asked(fake_openai.base_url)

    assert finding.state == "warning"
    assert "take a more capable model" in finding.advice


def test_a_missing_key_is_a_misuse():
    [finding] = ask_judge(Settings(judge="openai:gpt-4o-mini"), 20.0)

    assert (finding.state, finding.is_misuse) == ("failed", True)
    assert "OPENAI_API_KEY" in finding.found


@pytest.mark.parametrize(
    ("status", "error_type", "advice"),
    [
        (401, "AuthenticationError", "the key is refused"),
        (403, "PermissionDeniedError", "may not use this model"),
        (404, "NotFoundError", "knows no such model"),
        (400, "BadRequestError", "speak OpenAI's chat protocol"),
        (429, "RateLimitError", "rate limit or its credit"),
        (500, "InternalServerError", "the endpoint itself has failed"),
    ],
)
def test_each_kind_of_refusal_is_told_with_what_to_do(fake_openai, status, error_type, advice):
    fake_openai.answer = lambda _request: fake_openai.fails(status, f"no, {KEY}")

    finding = asked(fake_openai.base_url)

    assert finding.state == "failed"
    assert finding.facts["error_type"] == error_type
    assert f"HTTP {status}" in finding.found
    assert advice in finding.advice
    assert KEY not in finding.found


def test_a_model_that_babbles_is_told(fake_openai):
    fake_openai.answer = lambda _request: fake_openai.says("Certainly!")

    finding = asked(fake_openai.base_url)

    assert finding.facts["error_type"] == "InvalidVerdict"
    assert "more capable" in finding.advice


def test_an_endpoint_that_hangs_is_given_up_in_time(fake_openai):
    fake_openai.answer = lambda _request: fake_openai.hangs()

    finding = asked(fake_openai.base_url, seconds=0.3)

    assert finding.facts["error_type"] == "Timeout"
    assert "no answer within 0.3 s" in finding.found


def test_a_refused_connection_is_told_as_one(refused_port):
    finding = asked(f"http://127.0.0.1:{refused_port}/v1")

    assert finding.state == "failed"
    assert "(refused)" in finding.found
    assert "RAGSPAN_JUDGE_BASE_URL" in finding.advice


def test_a_certificate_that_nobody_trusts_is_told_as_one(make_otlp_listener):
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(tls)

    finding = asked(make_otlp_listener(tls=tls).url)

    assert "(certificate)" in finding.found
    assert "SSL_CERT_FILE" in finding.advice
