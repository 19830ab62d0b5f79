from __future__ import annotations

import pytest

from ragspan.judges.llm.errors import redacted_message

PROMPT = ["The pump carries a warranty of three years."]
LEFT_OUT = "the endpoint's message repeats the request and is left out"


class ProviderError(Exception):
    def __init__(self, words, message=None, status_code=None):
        super().__init__(words)
        self.message = message
        self.status_code = status_code


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        (ProviderError("Error code: 400", message="bad request", status_code=400), "HTTP 400: bad request"),
        (ProviderError("overloaded", message={"type": "error"}), "overloaded"),
        (ValueError("no such model"), "no such model"),
    ],
)
def test_the_providers_own_words_are_shown_with_the_status(error, shown):
    assert redacted_message(error, PROMPT) == shown


def test_keys_are_left_out_whether_known_or_only_shaped_like_one():
    error = ValueError("You sent internal-token-42 and sk-ant-api03-x*****6789.")

    assert redacted_message(error, PROMPT, secrets=[None, "", "internal-token-42"]) == "You sent [key] and [key]."


def test_a_word_that_is_too_short_for_a_key_stays():
    assert redacted_message(ValueError("no such model: m"), PROMPT, secrets=["m"]) == "no such model: m"


def test_a_message_that_repeats_a_part_of_the_prompt_is_left_out():
    assert redacted_message(ValueError("bad: pump carries a warranty of three"), PROMPT) == LEFT_OUT


def test_a_message_is_bounded():
    assert len(redacted_message(ValueError("x" * 100_000), PROMPT)) < 300
