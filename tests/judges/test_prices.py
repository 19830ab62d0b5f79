from __future__ import annotations

import math

import pytest

from ragspan.exceptions import ConfigurationError
from ragspan.judges.prices import PRICES, Price, price_of
from ragspan.outcomes import Usage


def test_input_cached_input_and_output_have_prices_of_their_own():
    usage = Usage(requests=1, input_tokens=3_000_000, cached_tokens=1_000_000, output_tokens=2_000_000)

    assert Price(2.0, 8.0, cached_input=0.5).of(usage) == 2 * 2.0 + 1 * 0.5 + 2 * 8.0


def test_without_a_price_of_its_own_cached_input_costs_what_other_input_does():
    assert Price(2.0, 8.0).of(Usage(input_tokens=1_000_000, cached_tokens=1_000_000)) == 2.0


def test_more_cached_tokens_than_input_cost_no_less_than_nothing():
    assert Price(2.0, 8.0, cached_input=0.5).of(Usage(cached_tokens=1_000_000)) == 0.0


def test_a_dated_name_has_the_price_of_its_model():
    assert price_of("gpt-4o-mini-2024-07-18") == price_of("gpt-4o-mini") == Price(0.15, 0.60, cached_input=0.075)


def test_a_date_with_a_price_of_its_own_has_that():
    assert price_of("gpt-4o-2024-05-13") == Price(5.0, 15.0)


@pytest.mark.parametrize("model", ["", "llama-3.1-8b", "gpt-4o-mini-audio", "ft:gpt-4o-mini:team", "my-gpt-4o"])
def test_a_model_that_is_not_in_the_table_has_no_price(model):
    assert price_of(model) is None


@pytest.mark.parametrize("model", PRICES)
def test_reading_is_cheaper_than_writing_and_the_cache_cheaper_than_reading(model):
    price = PRICES[model]

    assert 0 < price.input < price.output
    assert price.cached_input is None or 0 < price.cached_input < price.input


@pytest.mark.parametrize(
    ("arguments", "named"),
    [((-1, 2), "input"), ((1, math.inf), "output"), (("1", 2), "input"), ((1, 2, math.nan), "cached_input")],
)
def test_a_wrong_price_is_refused_by_name(arguments, named):
    with pytest.raises(ConfigurationError, match=f"a price's {named} is .*, but should be a number of dollars"):
        Price(*arguments)
