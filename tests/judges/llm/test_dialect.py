from __future__ import annotations

import pytest

from ragspan.judges.llm.dialect import Dialect

ASKED = {"schema": {"type": "object"}, "n": 3, "temperature": 0.7}


def test_a_single_choice_needs_no_n():
    assert "n" not in Dialect().parameters(schema={}, n=1, temperature=0)


def test_what_an_endpoint_does_not_take_is_left_out():
    bare = Dialect(response_format="none", several_choices=False, temperature=False)

    assert bare.parameters(**ASKED) == {}


@pytest.mark.parametrize(
    ("complaint", "parameter", "simpler"),
    [
        ("no", "response_format", Dialect(response_format="json_object")),
        ("Invalid schema for response_format 'answer'", None, Dialect(response_format="json_object")),
        ("no", "temperature", Dialect(temperature=False)),
        ("Unsupported value: 'temperature' does not support 0.7", None, Dialect(temperature=False)),
        ("no", "n", Dialect(several_choices=False)),
        ("'n' : number must be at most 1", None, Dialect(several_choices=False)),
        ("Unsupported parameter: n", None, Dialect(several_choices=False)),
        ("n must be 1", None, Dialect(several_choices=False)),
    ],
)
def test_a_complaint_about_a_parameter_makes_the_dialect_simpler(complaint, parameter, simpler):
    assert Dialect().without(complaint, parameter) == simpler


@pytest.mark.parametrize(
    ("complaint", "parameter"),
    [
        ("This model's maximum context length is 8192 tokens", None),
        ("Invalid 'messages': temperature of the sun, response_format and 'n'", "messages"),
        ("Unknown model", "model"),
    ],
)
def test_a_complaint_about_something_else_changes_nothing(complaint, parameter):
    assert Dialect().without(complaint, parameter) is None


def test_formats_are_given_up_one_after_the_other():
    json_mode = Dialect().without("", "response_format")
    plain = json_mode.without("", "response_format")

    assert (json_mode.response_format, plain.response_format) == ("json_object", "none")
    assert plain.without("", "response_format") is None
