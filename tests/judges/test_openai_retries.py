"""What the real client repeats, and how long it waits: it does, so that ragspan need not."""

from __future__ import annotations

import anyio
import pytest

from ragspan.exceptions import JudgeError

CLAIMS = '{"answer": {"claims": ["One."]}}'


@pytest.fixture
def waits(monkeypatch):
    """The seconds that the client waits before each further attempt; they pass at once."""
    waited = []

    async def pass_at_once(seconds):
        waited.append(seconds)

    monkeypatch.setattr(anyio, "sleep", pass_at_once)
    return waited


@pytest.fixture
def answers(fake_openai):
    """Lets the endpoint fail with these statuses, one after the other, and then answer."""

    def give(*statuses, **headers):
        failures = iter(statuses)
        fake_openai.reply_headers = {name.replace("_", "-"): text for name, text in headers.items()}

        def answer(_request):
            status = next(failures, None)
            return fake_openai.says(CLAIMS) if status is None else fake_openai.fails(status, "no")

        fake_openai.answer = answer

    return give


async def test_a_rate_limit_is_waited_out_for_as_long_as_the_endpoint_says(answers, waits, openai_judge, super_bowl):
    answers(429, 429, Retry_After="7")

    assert await openai_judge(max_retries=2).extract_claims(super_bowl) == ["One."]
    assert waits == [7.0, 7.0]


async def test_a_rate_limit_without_a_word_is_waited_out_longer_each_time(answers, waits, openai_judge, super_bowl):
    answers(429, 429, 429)

    assert await openai_judge(max_retries=3).extract_claims(super_bowl) == ["One."]
    for wait, longest in zip(waits, (0.5, 1.0, 2.0), strict=True):
        assert 0.75 * longest <= wait <= longest


@pytest.mark.parametrize("status", [408, 409, 500, 502, 503])
async def test_an_error_of_the_server_is_tried_again(answers, waits, openai_judge, super_bowl, status):
    answers(status)

    assert await openai_judge(max_retries=2).extract_claims(super_bowl) == ["One."]
    assert len(waits) == 1


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413])
async def test_what_would_fail_again_is_not_tried_again(answers, waits, fake_openai, openai_judge, super_bowl, status):
    answers(status)

    with pytest.raises(JudgeError):
        await openai_judge(max_retries=2).extract_claims(super_bowl)

    assert (len(fake_openai.requests), waits) == (1, [])


async def test_a_wait_of_hours_is_not_waited(answers, waits, openai_judge, super_bowl):
    answers(429, 429, 429, Retry_After="7200")

    with pytest.raises(JudgeError) as raised:
        await openai_judge(max_retries=2).extract_claims(super_bowl)

    assert raised.value.error_type == "RateLimitError"
    assert all(wait <= 8 for wait in waits)


@pytest.mark.parametrize(
    ("status", "outage"),
    [(429, True), (503, True), (401, True), (400, False)],
)
async def test_what_is_left_tells_whether_the_service_is_out(answers, openai_judge, super_bowl, status, outage):
    answers(*[status] * 3)

    with pytest.raises(JudgeError) as raised:
        await openai_judge().extract_claims(super_bowl)

    assert raised.value.outage is outage
