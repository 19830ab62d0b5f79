"""What is made of a provider's errors: whether the service is out, and which of their words are shown."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ragspan.judges.llm.requests import is_outage, redacted_message

PROMPT = ["The pump carries a warranty of three years."]


def an_error(kind=Exception, words="no", name=None, cause=None, **attributes):
    error = (type(name, (kind,), {}) if name else kind)(words)
    for attribute, value in attributes.items():
        setattr(error, attribute, value)
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("errors", "outage"),
    [
        *(({"status_code": status}, True) for status in (401, 402, 403, 404, 407, 408, 425, 429, 500, 502, 503, 529)),
        *(({"kind": ConnectionError, "status_code": status}, False) for status in (400, 409, 413, 415, 422)),
        ({"response": SimpleNamespace(status_code=422)}, False),
        ({"cause": an_error(status_code=422)}, False),
        *(({"kind": kind}, True) for kind in (ConnectionError, TimeoutError, ConnectionRefusedError)),
        *(({"name": name}, True) for name in ("APITimeoutError", "EndpointConnectionError", "ServiceUnavailable")),
        *(({"kind": kind}, False) for kind in (ValueError, TypeError, RuntimeError, FileNotFoundError)),
        ({"name": "ContextWindowExceededError"}, False),
        ({"name": "LengthFinishReasonError"}, False),
    ],
)
def test_an_error_is_an_outage_unless_it_is_about_one_request(errors, outage):
    assert is_outage(an_error(**errors)) is outage


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        (an_error(message="bad request", status_code=400), "HTTP 400: bad request"),
        (
            ValueError("You sent internal-token-42, five5, four and sk-ant-api03-x*****6789."),
            "You sent [key], [key], four and [key].",
        ),
        (ValueError(f"<{PROMPT[0][4:27]}>"), f"<{PROMPT[0][4:27]}>"),
        (ValueError(f"<{PROMPT[0][4:28]}>"), "the endpoint's message repeats the request and is left out"),
        (ValueError("x" * 100_000), "x" * 280),
        (an_error(body="<html><style>p {color: red}</style><p>502 Bad\nGateway</p></html>"), "502 Bad Gateway"),
    ],
    ids=["message", "keys", "words", "prompt", "long", "page"],
)
def test_a_providers_words_are_shown_without_keys_and_prompt(error, shown):
    assert (
        redacted_message(error, PROMPT, secrets=[None, "", "m", "four", "five5", "internal-token-42", "token-42"])
        == shown
    )
