from __future__ import annotations

import asyncio

import pytest

from ragspan.exceptions import JudgeError
from ragspan.judges.llm.parts import PARTS, schema_of

# What a request holds


async def test_votes_are_the_choices_of_one_request_with_a_strict_schema(fake_openai, openai_judge, super_bowl):
    fake_openai.script(grounding=[{"reasoning": "stated", "verdict": "grounded"}] * 3)

    votes = await openai_judge().vote_adherence(super_bowl, 3)

    [request] = fake_openai.requests
    assert len(votes) == 3
    assert (request["model"], request["n"]) == ("test-model", 3)
    assert request["response_format"]["type"] == "json_schema"
    assert request["response_format"]["json_schema"]["strict"] is True
    assert request["response_format"]["json_schema"]["schema"] == schema_of([PARTS["grounding"]])


# Endpoints that understand less


def error(message, **more):
    return {"error": {"message": message, "type": "invalid_request_error", **more}}


# Endpoints in trouble


@pytest.mark.parametrize(
    ("status", "body", "error_type", "said"),
    [
        (
            401,
            error("Incorrect API key provided"),
            "AuthenticationError",
            r"HTTP 401: Incorrect API key.*check the key",
        ),
        (404, b"404 page not found", "NotFoundError", r"HTTP 404: 404 page not found \(.*base_url.* ends in /v1"),
        (
            429,
            error("Please try again in 20s."),
            "RateLimitError",
            r"again in 20s. \(the account .* Budget\(requests_per_minute=\)",
        ),
        (400, error("The maximum context length is 8192"), "BadRequestError", "lower max_context_chars"),
        (
            502,
            b"<html><title>502</title><h1>Bad\nGateway</h1></html>",
            "InternalServerError",
            "HTTP 502: 502 Bad Gateway",
        ),
        (200, b"<html>Please log in.</html>", "InvalidResponse", "cannot be read .*: check base_url"),
    ],
)
async def test_an_error_says_what_to_do(fake_openai, openai_judge, super_bowl, status, body, error_type, said):
    fake_openai.answer = lambda _request: (status, body)

    with pytest.raises(JudgeError, match=said) as raised:
        await openai_judge().extract_claims(super_bowl)

    assert raised.value.error_type == error_type
    assert len(fake_openai.requests) == 1


# Cost and connections


def test_one_judge_serves_one_event_loop_after_another(fake_openai, openai_judge, super_bowl):
    """Connections that outlived their loop would warn here, and warnings are errors."""
    judge = openai_judge()

    for _ in range(3):
        fake_openai.script(claim_verdicts=[[{"number": 1, "reasoning": "stated", "verdict": "supported"}]])
        assert len(asyncio.run(judge.verify_claims(super_bowl, ["One."]))) == 1

    assert len(fake_openai.requests) == 3


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"error": {"message": "upstream is busy", "code": 502}}, "upstream is busy"),
        ([{"error": {"code": 503, "message": "the model is overloaded", "status": "UNAVAILABLE"}}], "overloaded"),
    ],
    ids=["gateway", "Google"],
)
async def test_an_error_with_status_200_is_told_in_its_own_words(fake_openai, openai_judge, super_bowl, body, words):
    fake_openai.answer = lambda _request: (200, body)

    with pytest.raises(JudgeError, match=words) as raised:
        await openai_judge().extract_claims(super_bowl)

    assert raised.value.error_type == "InvalidResponse"
