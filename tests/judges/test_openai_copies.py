"""A judge that is sent to another process."""

from __future__ import annotations

import pickle

import openai
import pytest

from ragspan.exceptions import JudgeError
from ragspan.judges import OpenAIJudge, Price


async def test_a_copy_asks_the_same_model_in_the_same_way(fake_openai, openai_judge, super_bowl):
    fake_openai.script(claims=[["One."], ["One."]])
    judge = openai_judge(extra_body={"seed": 7}, api_key="sk-secret-0123456789", price=Price(1, 2))
    copy = pickle.loads(pickle.dumps(judge))

    assert await judge.extract_claims(super_bowl) == await copy.extract_claims(super_bowl)
    original, copied = fake_openai.requests
    assert original == copied
    assert copied["seed"] == 7
    assert {headers["Authorization"] for headers in fake_openai.headers} == {"Bearer sk-secret-0123456789"}
    assert (copy.name, copy.price) == (judge.name, judge.price)


async def test_a_judge_at_work_can_be_copied(fake_openai, openai_judge, super_bowl):
    fake_openai.script(claims=[[], []])
    judge = openai_judge()
    await judge.extract_claims(super_bowl)
    copy = pickle.loads(pickle.dumps(judge))

    assert await copy.extract_claims(super_bowl) == []


async def test_a_judge_with_a_given_client_cannot_and_says_what_to_do(fake_openai):
    async with openai.AsyncOpenAI(base_url=fake_openai.base_url, api_key="sk-key") as client:
        with pytest.raises(pickle.PicklingError, match="give it base_url= and api_key= in place of client="):
            pickle.dumps(OpenAIJudge("m", client=client))


async def test_a_copy_does_not_take_the_service_for_out(fake_openai, openai_judge, super_bowl):
    fake_openai.answer = lambda _request: fake_openai.fails(500, "no")
    judge = openai_judge()
    for _ in range(6):
        with pytest.raises(JudgeError):
            await judge.extract_claims(super_bowl)
    assert len(fake_openai.requests) == 5

    fake_openai.answer = lambda _request: fake_openai.says('{"answer": {"claims": []}}')
    assert await pickle.loads(pickle.dumps(judge)).extract_claims(super_bowl) == []
