import json

import pytest

KEY = "sk-test-0123456789"
GROUNDED = json.dumps({"answer": {"grounding": {"reasoning": "It says so.", "verdict": "grounded"}}})
PRICED = {"prompt_tokens": 300, "completion_tokens": 20, "total_tokens": 320}


def says(fake_openai, *texts, **more):
    fake_openai.answer = lambda request: fake_openai.says(*texts * request.get("n", 1), **more)


@pytest.fixture
def asked(examined):
    """What one record shows about a language model at this address."""

    def ask(base_url, *, timeout=20.0):
        variables = {
            "JUDGE": "openai:tiny",
            "JUDGE_BASE_URL": base_url,
            "JUDGE_API_KEY": KEY,
            "METRICS": "context_adherence",
        }
        [finding] = examined(timeout=timeout, **{f"RAGSPAN_{name}": value for name, value in variables.items()}).of(
            "judge"
        )
        return finding

    return ask


def test_the_embedded_judge_answers_at_once(examined):
    [finding] = examined().of("judge")

    assert finding.state == "ok"
    assert finding.facts["judge"] == "overlap"
    assert finding.facts["seconds"] > 0


def test_the_tokens_of_a_language_model_are_told(asked, fake_openai):
    says(fake_openai, GROUNDED, usage=PRICED)

    finding = asked(fake_openai.base_url)

    assert finding.state == "ok"
    assert "openai:tiny answered in " in finding.found
    assert "300 tokens in, 20 out, price unknown" in finding.found
    assert finding.facts["input_tokens"] == 300


def test_what_an_endpoint_refuses_is_told_in_its_words(asked, fake_openai):
    def answer(request):
        if "n" in request:
            return fake_openai.fails(400, "Multiple candidates is not enabled for this model")
        return fake_openai.says(GROUNDED)

    fake_openai.answer = answer

    finding = asked(fake_openai.base_url)

    assert finding.state == "ok"
    assert "it goes without n, which the endpoint refuses (HTTP 400: Multiple candidates is not" in finding.found


def test_a_judge_that_denies_what_is_plain_is_a_warning(asked, fake_openai):
    says(fake_openai, GROUNDED.replace('"grounded"', '"not_grounded"'))

    finding = asked(fake_openai.base_url)

    assert (finding.state, finding.code) == ("warning", "judge_fails_good_answer")


def test_a_missing_key_is_a_misuse(examined):
    [finding] = examined(RAGSPAN_JUDGE="openai:gpt-4o-mini").of("judge")

    assert (finding.state, finding.is_misuse) == ("failed", True)
    assert "OPENAI_API_KEY" in finding.found


@pytest.mark.parametrize(
    ("reply", "error_type", "found", "code"),
    [
        (401, "AuthenticationError", "check the key", "judge_wrong_key"),
        (500, "InternalServerError", "HTTP 500", "judge_failed"),
        ("Certainly!", "InvalidVerdict", "take a larger model", "judge_unreadable"),
        ("hangs", "timeout", "no outcome within 1.6", "judge_timeout"),
    ],
)
def test_each_failure_is_reported_with_what_to_do(asked, fake_openai, reply, error_type, found, code):
    def answer(request):
        if reply == "hangs":
            return fake_openai.hangs()
        return fake_openai.says(reply) if isinstance(reply, str) else fake_openai.fails(reply, f"no, {KEY}")

    fake_openai.answer = answer

    finding = asked(fake_openai.base_url, timeout=4.0 if reply == "hangs" else 20.0)

    assert (finding.state, finding.facts["error_type"]) == ("failed", error_type)
    assert found in finding.found
    assert finding.code == code
    assert KEY not in finding.found
