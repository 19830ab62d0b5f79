"""What a request sends to an endpoint, and what its errors teach."""

from __future__ import annotations

import pytest

from ragspan.judges.llm.capabilities import EndpointCapabilities, EndpointHabits
from ragspan.judges.llm.refused_parameters import OPTIONAL, PARAMETERS, refusal_of

ASKED = {"schema": {"type": "object"}, "n": 3, "temperature": 0.7}
SENT = ["response_format", "n", "temperature", "max_tokens", "seed"]


class ProviderError(Exception):
    def __init__(self, message="no", *, status_code=400, param=None, body=None):
        super().__init__(message)
        self.status_code = status_code
        self.param = param
        self.body = body


def ways_of(habits, errors):
    """What one request sends, attempt by attempt, until the errors are used up; it is answered then."""
    attempt = habits.attempt()
    ways = [attempt.capabilities.parameters(**ASKED)]
    for error in errors:
        if not attempt.goes_on_without(error, ways[-1]):
            return ways
        ways.append(attempt.capabilities.parameters(**ASKED))
    attempt.ended_well(ways[-1])
    return ways


def brief(way):
    """The kind of its format, and what else it has."""
    kind = way.get("response_format", {}).get("type")
    return (kind, *(name for name in ("n", "temperature") if name in way))


FULL = ("json_schema", "n", "temperature")


def test_what_an_endpoint_does_not_take_is_left_out():
    bare = EndpointCapabilities(
        response_format="none", several_choices=False, temperature=False, left_out=frozenset({"seed"})
    )

    assert bare.parameters(**ASKED, further={"seed": 7, "user": "u"}) == {"user": "u"}


def test_a_limit_of_tokens_gets_its_other_name_and_then_none():
    old = EndpointCapabilities().without("max_tokens")

    assert old.kept({"max_tokens": 9}) == {"max_completion_tokens": 9}
    assert old.without("max_completion_tokens").kept({"max_tokens": 9}) == {}


@pytest.mark.parametrize(
    "error",
    [
        ProviderError("This model's maximum context length is 8192 tokens"),
        ProviderError("The response was filtered by the content management policy"),
        ProviderError("Invalid 'messages': temperature of the sun, response_format and 'n'", param="messages"),
        ProviderError("Unknown model", param="model"),
        ProviderError("model 'm' not found, try pulling it", status_code=404),
        ProviderError("temperature", status_code=401),
        ProviderError("temperature", status_code=429),
        ProviderError("response_format", status_code=503),
    ],
)
def test_an_error_about_something_else_refuses_nothing(error):
    assert refusal_of(error, SENT) is None


@pytest.mark.parametrize(
    ("error", "parameter"),
    [
        (ProviderError(param="response_format.json_schema.schema"), "response_format"),
        (ProviderError(body={"detail": [{"loc": ["body", "n"], "msg": "Extra inputs are not permitted"}]}), "n"),
        (
            ProviderError(body=[{"error": {"details": [{"field": "generation_config.response_schema"}]}}]),
            "response_format",
        ),
        (ProviderError("Argument not supported on this model: maxOutputTokens"), "max_tokens"),
        (ProviderError("unsupported: max_tokens; use max_completion_tokens"), "max_tokens"),
        (ProviderError("unknown", body={"error": {"message": 'Unknown name "n": Cannot find field.'}}), "n"),
        (ProviderError("property 'n' is unsupported", param="validation_error"), "n"),
        (ProviderError("schema is too large", status_code=500), "response_format"),
    ],
)
def test_a_refusal_says_which_parameter_it_is(error, parameter):
    assert refusal_of(error, SENT).parameter == parameter


def test_what_was_not_sent_is_not_refused():
    assert refusal_of(ProviderError("n must be 1", status_code=404), ["temperature"]) is None


def test_no_two_parameters_share_a_name():
    names = [name for row in PARAMETERS for name in (row.name, *row.names)]

    assert len(names) == len(set(names))
    assert {row.instead for row in PARAMETERS if row.instead} <= set(OPTIONAL)


# Learning


def test_what_is_named_is_left_out_from_then_on_and_nothing_else():
    habits = EndpointHabits()

    ways = ways_of(habits, [ProviderError("n must be 1"), ProviderError(param="temperature")])

    assert list(map(brief, ways)) == [FULL, ("json_schema", "temperature"), ("json_schema",)]
    assert list(map(brief, ways_of(habits, []))) == [("json_schema",)]
    assert habits.refused == {"n": "n must be 1", "temperature": "no"}


def test_a_refusal_that_leaving_things_out_does_not_settle_teaches_nothing():
    habits = EndpointHabits()
    errors = [ProviderError("a text about a schema, at a temperature")] * 9

    ways_of(habits, errors)

    assert brief(ways_of(habits, [])[0]) == FULL
    assert habits.refused == {}


def test_if_nothing_is_named_each_untried_parameter_is_left_out_in_turn_the_least_important_first():
    error = ProviderError("Request contains an invalid argument.")

    ways = ways_of(EndpointHabits(), [error] * 9)

    assert list(map(brief, ways)) == [
        FULL,
        ("json_schema", "temperature"),
        ("json_schema", "n"),
        ("json_object", "n", "temperature"),
        (None, "n", "temperature"),
        (None,),
    ]


def test_what_was_guessed_right_is_learned_alone():
    habits = EndpointHabits()

    ways_of(habits, [ProviderError("invalid")] * 2)

    assert brief(ways_of(habits, [])[0]) == ("json_schema", "n")


def test_where_all_parameters_were_taken_before_an_error_without_a_name_is_about_the_request():
    habits = EndpointHabits()
    ways_of(habits, [])

    assert len(ways_of(habits, [ProviderError("invalid")])) == 1


def test_an_error_of_the_server_costs_the_schema_only_where_none_was_taken_yet():
    new, known = EndpointHabits(), EndpointHabits()
    ways_of(known, [])
    out = ProviderError("Internal Server Error", status_code=500)

    assert list(map(brief, ways_of(new, [out] * 9))) == [
        FULL,
        ("json_object", "n", "temperature"),
        (None, "n", "temperature"),
    ]
    assert len(ways_of(known, [out])) == 1


def test_one_failed_generation_costs_one_request_its_schema_and_three_in_a_row_all_later_ones():
    habits = EndpointHabits()
    failed = ProviderError("Failed to generate JSON. See 'failed_generation' for more details.")

    for _ in range(2):
        assert [brief(way)[0] for way in ways_of(habits, [failed])] == ["json_schema", "json_object"]
    ways_of(habits, [])
    for _ in range(3):
        assert brief(ways_of(habits, [failed])[0])[0] == "json_schema"

    assert brief(ways_of(habits, [])[0])[0] == "json_object"


def test_requests_side_by_side_learn_together():
    habits = EndpointHabits()
    attempts = [habits.attempt() for _ in range(2)]
    for attempt, error in zip(
        attempts, [ProviderError("n must be 1"), ProviderError(param="response_format")], strict=True
    ):
        assert attempt.goes_on_without(error, attempt.capabilities.parameters(**ASKED))
    for attempt in attempts:
        attempt.ended_well(attempt.capabilities.parameters(**ASKED))

    assert brief(ways_of(habits, [])[0]) == ("json_object", "temperature")
