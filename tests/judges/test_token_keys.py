"""A key that a function makes for each request."""

from __future__ import annotations

import asyncio

from ragspan.judges import OpenAIJudge


def test_each_request_has_a_token_of_its_own_in_every_loop(fake_openai, super_bowl):
    fake_openai.answer = lambda _request: fake_openai.fails(401, f"not with {fake_openai.headers[-1]['authorization']}")
    made = []

    async def token():
        made.append(f"token-0123456{len(made)}")
        return made[-1]

    judge = OpenAIJudge("our-deployment", provider="azure", base_url=fake_openai.base_url, api_key=token, max_retries=0)
    failures = [asyncio.run(asyncio.wait_for(_failure(judge, super_bowl), 30)) for _ in range(2)]

    assert [headers["authorization"] for headers in fake_openai.headers] == [f"Bearer {one}" for one in made]
    assert len(made) == 2
    assert not [one for one in made if one in " ".join(failures)]


async def _failure(judge, record):
    try:
        await judge.vote_adherence(record, 1)
    except Exception as error:
        return str(error)
    return "none"
