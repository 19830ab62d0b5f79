from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from whole_records import WholeRecords

from ragspan.exceptions import JudgeError
from ragspan.judges.llm.parts import PARTS, schema_of

ERRORS = WholeRecords(Path(__file__).with_name("whole_errors.json"))

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


# Endpoints in trouble


def error(message, **more):
    return {"error": {"message": message, "type": "invalid_request_error", **more}}


@pytest.mark.parametrize(
    ("status", "body"),
    [
        *((status, error("No.")) for status in (401, 403, 408, 429, 500)),
        *((status, b"") for status in (301, 302, 303, 307, 308)),
        (404, b"404 page not found"),
        (400, error("This is too long.")),
        (400, [error("No.")]),  # Google
        (400, {"detail": "größer"}),
        (502, b"<html><title>502</title><h1>Bad\nGateway</h1></html>"),
        (200, b"<html>Please log in.</html>"),
        (200, {}),
        (200, error("")),
        (200, error("busy", code=502)),
        (200, [error("overloaded", code=503, status="UNAVAILABLE")]),  # Google
    ],
)
async def test_an_error_says_what_to_do(fake_openai, openai_judge, super_bowl, status, body):
    fake_openai.answer = lambda _request: (status, body)

    with pytest.raises(JudgeError) as raised:
        await openai_judge().extract_claims(super_bowl)

    error = raised.value
    known, found = ERRORS.told(f"{status} {body}", [error.error_type, str(error), error.outage, error.status])
    assert found == known
    assert len(fake_openai.requests) == 1


@pytest.mark.parametrize("options", [{"base_url": "http://127.0.0.1:9/v1"}, {"timeout": 0.1}], ids=str)
async def test_an_endpoint_that_does_not_answer_is_told_with_what_to_do(fake_openai, openai_judge, super_bowl, options):
    fake_openai.answer = lambda _request: fake_openai.hangs()

    with pytest.raises(JudgeError) as raised:
        await openai_judge(**options).extract_claims(super_bowl)

    known, found = ERRORS.told(str(options), str(raised.value))
    assert found == known


# Cost and connections


def test_one_judge_serves_one_event_loop_after_another(fake_openai, openai_judge, super_bowl):
    """Connections that outlived their loop would warn here, and warnings are errors."""
    judge = openai_judge()

    for _ in range(3):
        fake_openai.script(claim_verdicts=[[{"number": 1, "reasoning": "stated", "verdict": "supported"}]])
        assert len(asyncio.run(judge.verify_claims(super_bowl, ["One."]))) == 1

    assert len(fake_openai.requests) == 3
