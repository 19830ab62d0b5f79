"""The benchmark of what judging costs: it counts tokens rightly, runs, and measures something."""

from __future__ import annotations

import json

import pytest

FOUR = "ragspan, all four metrics"
OF_RAGSPAN = {
    FOUR,
    "ragspan, faithfulness and utilization",
    "ragspan, context_adherence",
    "ragspan, completeness",
    "ragspan, context_utilization",
    "ragspan, faithfulness",
}
OF_RAGAS = {"Ragas, Faithfulness and ContextUtilization", "Ragas, Faithfulness", "Ragas, ContextUtilization"}


@pytest.fixture(scope="module")
def sent(part):
    return part("judging.prompts_sent")


@pytest.fixture
def a_token_a_character(sent):
    return sent.Tokenizer(name="characters", count=len)


def exchange(content, *, reply="yes", **more):
    return {"request": {"messages": [{"role": "user", "content": content}], **more}, "reply": reply}


def test_a_prefix_is_shared_with_the_earlier_request_that_has_most_of_it(sent, a_token_a_character):
    exchanges = [exchange("abcdef"), exchange("xyz"), exchange("abcxyz")]

    cost = sent.cost_of(exchanges, a_token_a_character)

    assert cost.prompt_tokens == 3 * len("user\n") + 6 + 3 + 6
    assert cost.cacheable_tokens == len("user\n") + len("user\nabc")
    assert cost.common_tokens == 3 * len("user\n")


def test_a_single_request_shares_nothing(sent, a_token_a_character):
    cost = sent.cost_of([exchange("abcdef")], a_token_a_character)

    assert (cost.requests, cost.cacheable_tokens, cost.common_tokens) == (1, 0, 0)


@pytest.mark.parametrize(("shared", "cached"), [(1023, 0), (1024, 1024), (1151, 1024), (1152, 1152)])
def test_a_cache_serves_from_1024_tokens_on_and_in_steps_of_128(sent, a_token_a_character, shared, cached):
    text = "a" * (shared - len("user\n"))

    cost = sent.cost_of([exchange(text + "b"), exchange(text + "c")], a_token_a_character)

    assert cost.cacheable_tokens == shared
    assert cost.cached_tokens == cached


def test_a_schema_belongs_to_the_prompt_and_comes_first(sent, a_token_a_character):
    schema = {"type": "json_schema"}

    prompts = [sent.prompt_of(exchange(text, response_format=schema)["request"]) for text in ("abc", "abd")]

    assert prompts[0] == f"{json.dumps(schema)}\nuser\nabc"
    assert prompts[0][:-1] == prompts[1][:-1]


def test_each_choice_counts_as_a_completion(sent, a_token_a_character):
    cost = sent.cost_of([exchange("abc", reply="12345", n=3), exchange("abc", reply="1")], a_token_a_character)

    assert cost.completion_tokens == 16


@pytest.fixture(scope="module")
def measured(figures_of):
    """The figures of a quick run."""
    return figures_of("judge_cost.py")


@pytest.mark.slow
def test_everybody_is_measured_or_left_out_with_a_reason(measured):
    results = {result["contender"] for result in measured["results"]}
    left_out = {absent["contender"]: absent["reason"] for absent in measured["left_out"]}

    assert results | left_out.keys() == OF_RAGSPAN | OF_RAGAS
    assert results >= OF_RAGSPAN
    assert all(left_out.values())


@pytest.mark.slow
def test_all_four_metrics_take_few_requests_that_have_most_in_common(measured):
    four = next(result for result in measured["results"] if result["contender"] == FOUR)

    assert measured["passages"] == 5
    assert four["requests"] <= measured["targets"]["requests"]
    assert four["common_tokens"] / four["prompt_tokens"] >= measured["targets"]["common_share"]


@pytest.mark.slow
def test_nothing_is_cached_that_could_not_be_and_a_single_request_least_of_all(measured):
    for result in measured["results"]:
        assert 0 <= result["cached_tokens"] <= result["cacheable_tokens"] < result["prompt_tokens"]
        assert (result["cacheable_tokens"] == 0) == (result["requests"] == 1)
        assert result["completion_tokens"] > 0
