from __future__ import annotations

import pytest

from ragspan.exceptions import JudgeError
from ragspan.judges.llm.chat_protocol import EndpointCapabilities, read_completions
from ragspan.outcomes import Usage

ASKED = {"schema": {"type": "object"}, "n": 3, "temperature": 0.7}


def chat(*texts, usage=None):
    return {"choices": [{"message": {"content": text}, "finish_reason": "stop"} for text in texts], "usage": usage}


def test_a_choice_holds_the_models_text_and_the_first_one_the_usage():
    completions = read_completions(chat("a", "b", usage={"prompt_tokens": 3, "completion_tokens": 2}))

    assert [(one.text, one.usage) for one in completions] == [
        ("a", Usage(requests=1, input_tokens=3, output_tokens=2)),
        ("b", Usage()),
    ]


@pytest.mark.parametrize(
    "usage",
    [
        None,
        "cheap",
        {"prompt_tokens": "many"},
        {"prompt_tokens": 1.5, "completion_tokens": None},
        {"prompt_tokens": []},
    ],
)
def test_usage_that_cannot_be_read_still_counts_as_a_request(usage):
    [completion] = read_completions(chat("a", usage=usage))

    assert completion.usage == Usage(requests=1)


@pytest.mark.parametrize("choice", [None, "text", {}, {"message": None}, {"message": {"content": ["a"]}}])
def test_a_choice_of_another_shape_is_kept_with_an_empty_text(choice):
    reply = chat("a")
    reply["choices"].append(choice)

    assert [completion.text for completion in read_completions(reply)] == ["a", ""]


@pytest.mark.parametrize("reply", [None, "text", [], {}, {"choices": None}, {"choices": []}, {"choices": "a"}])
def test_an_answer_without_choices_is_an_error(reply):
    with pytest.raises(JudgeError) as raised:
        read_completions(reply)

    assert raised.value.error_type == "InvalidResponse"
    assert raised.value.outage


# What an endpoint takes


def test_a_single_choice_needs_no_n():
    assert "n" not in EndpointCapabilities().parameters(schema={}, n=1, temperature=0)


def test_what_an_endpoint_does_not_take_is_left_out():
    bare = EndpointCapabilities(response_format="none", several_choices=False, temperature=False)

    assert bare.parameters(**ASKED) == {}


@pytest.mark.parametrize(
    ("complaint", "parameter"),
    [
        ("This model's maximum context length is 8192 tokens", None),
        ("Invalid 'messages': temperature of the sun, response_format and 'n'", "messages"),
        ("Unknown model", "model"),
    ],
)
def test_a_complaint_about_something_else_changes_nothing(complaint, parameter):
    error = ValueError(complaint)
    error.param = parameter

    assert EndpointCapabilities().without(error) is None
