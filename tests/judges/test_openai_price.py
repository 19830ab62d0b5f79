from __future__ import annotations

import openai
import pytest

from ragspan.judges import OpenAIJudge, Price
from ragspan.judges.session import metered

MINI = Price(0.15, 0.60, cached_input=0.075)
OPENAI = "https://api.openai.com/v1"


@pytest.fixture(autouse=True)
def no_endpoint_in_the_environment(monkeypatch):
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


@pytest.mark.parametrize("endpoint", [{}, {"base_url": OPENAI}])
def test_openais_own_models_have_a_price(endpoint):
    assert OpenAIJudge("gpt-4o-mini-2024-07-18", api_key="sk-key", **endpoint).price == MINI


def test_the_model_of_another_server_has_none(fake_openai):
    assert OpenAIJudge("gpt-4o-mini", api_key="sk-key", base_url=fake_openai.base_url).price is None


def test_nor_has_that_of_a_server_in_the_environment(monkeypatch, fake_openai):
    monkeypatch.setenv("OPENAI_BASE_URL", fake_openai.base_url)

    assert OpenAIJudge("gpt-4o-mini", api_key="sk-key").price is None


async def test_a_given_client_says_who_is_asked(fake_openai):
    for base_url, price in ((OPENAI, MINI), (fake_openai.base_url, None)):
        async with openai.AsyncOpenAI(base_url=base_url, api_key="sk-key") as client:
            assert OpenAIJudge("gpt-4o-mini", client=client).price == price


def test_a_price_that_is_given_goes_before_the_table():
    price = Price(0.1, 0.2)

    assert OpenAIJudge("gpt-4o-mini", api_key="sk-key", price=price).price is price


def test_a_price_of_nothing_is_a_price():
    assert OpenAIJudge("gpt-4o-mini", api_key="sk-key", price=Price(0, 0)).price == Price(0, 0)


async def test_what_a_request_costs_is_on_its_usage(fake_openai, openai_judge, super_bowl):
    usage = {"prompt_tokens": 1000, "completion_tokens": 100, "prompt_tokens_details": {"cached_tokens": 800}}
    fake_openai.answer = lambda _request: fake_openai.says('{"answer": {"claims": []}}', usage=usage)

    with metered() as meter:
        await openai_judge(price=Price(1.0, 10.0, cached_input=0.5)).extract_claims(super_bowl)

    assert meter.total.usd == pytest.approx((200 * 1.0 + 800 * 0.5 + 100 * 10.0) / 1_000_000)
