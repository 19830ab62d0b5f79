from __future__ import annotations

import pytest

from ragspan.judges.llm.usage import UsageEstimator
from ragspan.outcomes import Usage

MESSAGES = [{"role": "system", "content": "x" * 400}, {"role": "user", "content": "y" * 3600}]


def test_at_first_four_characters_are_a_token_and_a_reply_is_some_sentences():
    expected = UsageEstimator().expect(MESSAGES, question="claims", choices=1)

    assert (expected.requests, expected.input_tokens) == (1, 1001)
    assert 100 < expected.output_tokens < 500


def test_each_choice_takes_a_reply_and_the_prompt_is_read_once():
    once, thrice = (UsageEstimator().expect(MESSAGES, question="claims", choices=choices) for choices in (1, 3))

    assert thrice.input_tokens == once.input_tokens
    assert thrice.output_tokens == pytest.approx(3 * once.output_tokens, abs=2)


def learnt(used, *, choices=1, question="claims"):
    estimator = UsageEstimator()
    for _ in range(50):
        estimator.learn(MESSAGES, used, question=question, choices=choices)
    return estimator


def test_it_learns_how_long_replies_are():
    estimator = learnt(Usage(requests=1, input_tokens=1000, output_tokens=1200), choices=3)

    assert estimator.expect(MESSAGES, question="claims", choices=1).output_tokens == pytest.approx(400, rel=0.01)


def test_replies_to_each_question_have_a_length_of_their_own():
    estimator = learnt(Usage(requests=1, output_tokens=9000), question="claims")
    fresh = UsageEstimator().expect(MESSAGES, question="grounding", choices=1)

    assert estimator.expect(MESSAGES, question="grounding", choices=1) == fresh


def test_it_learns_how_many_characters_are_a_token():
    """One of Chinese is about one."""
    estimator = learnt(Usage(requests=1, input_tokens=4000, output_tokens=100))

    assert estimator.expect(MESSAGES, question="claims", choices=1).input_tokens == pytest.approx(4000, rel=0.01)


def test_it_learns_that_a_client_sends_a_request_for_each_choice():
    estimator = learnt(Usage(requests=3, input_tokens=3000, output_tokens=300), choices=3)
    expected = estimator.expect(MESSAGES, question="claims", choices=2)

    assert expected.requests == 2
    assert expected.input_tokens == pytest.approx(2000, rel=0.01)


def test_one_long_reply_does_not_change_everything():
    estimator = UsageEstimator()
    estimator.learn(MESSAGES, Usage(requests=1, output_tokens=10_000), question="claims", choices=1)

    assert estimator.expect(MESSAGES, question="claims", choices=1).output_tokens < 3000


def test_what_an_endpoint_does_not_tell_teaches_nothing():
    fresh = UsageEstimator().expect(MESSAGES, question="claims", choices=1)

    assert learnt(Usage(requests=1)).expect(MESSAGES, question="claims", choices=1) == fresh
