from __future__ import annotations

import pytest

from ragspan.judges.llm.chat_protocol import EndpointCapabilities

ASKED = {"schema": {"type": "object"}, "n": 3, "temperature": 0.7}


def test_a_single_choice_needs_no_n():
    assert "n" not in EndpointCapabilities().parameters(schema={}, n=1, temperature=0)


def test_what_an_endpoint_does_not_take_is_left_out():
    bare = EndpointCapabilities(response_format="none", several_choices=False, temperature=False)

    assert bare.parameters(**ASKED) == {}


@pytest.mark.parametrize(
    ("complaint", "parameter", "simpler"),
    [
        ("no", "response_format", EndpointCapabilities(response_format="json_object")),
        ("Invalid schema for response_format 'answer'", None, EndpointCapabilities(response_format="json_object")),
        ("no", "temperature", EndpointCapabilities(temperature=False)),
        ("Unsupported value: 'temperature' does not support 0.7", None, EndpointCapabilities(temperature=False)),
        ("no", "n", EndpointCapabilities(several_choices=False)),
        ("'n' : number must be at most 1", None, EndpointCapabilities(several_choices=False)),
        ("Unsupported parameter: n", None, EndpointCapabilities(several_choices=False)),
        ("n must be 1", None, EndpointCapabilities(several_choices=False)),
    ],
)
def test_a_complaint_about_a_parameter_makes_the_dialect_simpler(complaint, parameter, simpler):
    assert EndpointCapabilities().without(complaint, parameter) == simpler


@pytest.mark.parametrize(
    ("complaint", "parameter"),
    [
        ("This model's maximum context length is 8192 tokens", None),
        ("Invalid 'messages': temperature of the sun, response_format and 'n'", "messages"),
        ("Unknown model", "model"),
    ],
)
def test_a_complaint_about_something_else_changes_nothing(complaint, parameter):
    assert EndpointCapabilities().without(complaint, parameter) is None


def test_formats_are_given_up_one_after_the_other():
    json_mode = EndpointCapabilities().without("", "response_format")
    plain = json_mode.without("", "response_format")

    assert (json_mode.response_format, plain.response_format) == ("json_object", "none")
    assert plain.without("", "response_format") is None
