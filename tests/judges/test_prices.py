from __future__ import annotations

import pytest

from ragspan.judges import Price
from ragspan.judges.openai import price_of
from ragspan.usage import Usage

MINI = Price(0.15, 0.60, cached_input=0.075)


@pytest.mark.parametrize(
    ("cached_input", "usage", "usd"),
    [
        (0.5, {"input_tokens": 3_000_000, "cached_tokens": 1_000_000, "output_tokens": 2_000_000}, 2 * 2 + 0.5 + 2 * 8),
        (None, {"input_tokens": 1_000_000, "cached_tokens": 1_000_000}, 2.0),  # as other input
        (0.5, {"cached_tokens": 1_000_000}, 0.0),  # more than all input
    ],
)
def test_input_cached_input_and_output_have_prices_of_their_own(cached_input, usage, usd):
    assert Price(2.0, 8.0, cached_input=cached_input).of(Usage(**usage)) == usd


@pytest.mark.parametrize(
    ("model", "price"),
    [
        ("gpt-4o-mini", MINI),
        ("gpt-4o-mini-2024-07-18", MINI),
        ("gpt-4o-2024-11-20", Price(2.5, 10.0, cached_input=1.25)),
        ("gpt-4o-2024-05-13", Price(5.0, 15.0)),  # this date has a price of its own
        *((model, None) for model in ("", "llama-3.1-8b", "gpt-4o-mini-audio", "ft:gpt-4o-mini:team", "my-gpt-4o")),
    ],
)
def test_a_model_has_the_price_of_the_table_whatever_its_date(model, price):
    assert price_of(model) == price


@pytest.mark.parametrize(
    ("host", "price"),
    [
        ("api.openai.com", MINI),
        ("eu.api.openai.com", None),
        ("our-resource.openai.azure.com", MINI),
        ("api.openai.com.evil.example", None),
    ],
)
def test_a_price_is_known_at_openais_hosts_and_azures(host, price):
    assert price_of("gpt-4o-mini", host) == price
