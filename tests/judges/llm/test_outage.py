from __future__ import annotations

from types import SimpleNamespace

import pytest

from ragspan.judges.llm.errors import is_outage


def an_error(kind=Exception, name=None, cause=None, **attributes):
    error = (type(name, (kind,), {}) if name else kind)("no")
    for attribute, value in attributes.items():
        setattr(error, attribute, value)
    error.__cause__ = cause
    return error


@pytest.mark.parametrize("status", [401, 402, 403, 404, 407, 408, 425, 429, 500, 502, 503, 529])
def test_a_status_about_the_service_or_the_account_is_an_outage(status):
    assert is_outage(an_error(status_code=status))


@pytest.mark.parametrize("status", [400, 409, 413, 415, 422])
def test_a_status_about_the_request_is_none(status):
    assert not is_outage(an_error(ConnectionError, status_code=status))


@pytest.mark.parametrize(
    "where",
    [
        {"status_code": 422},
        {"code": 422},
        {"http_status": 422},
        {"response": SimpleNamespace(status_code=422)},
        {"response": {"ResponseMetadata": {"HTTPStatusCode": 422}}},
        {"cause": an_error(status_code=422)},
    ],
)
def test_the_status_is_found_where_clients_keep_it(where):
    assert not is_outage(an_error(**where))


@pytest.mark.parametrize("code", ["context_length_exceeded", None, True, 7])
def test_a_code_that_is_no_status_decides_nothing(code):
    assert is_outage(an_error(code=code))


@pytest.mark.parametrize("kind", [ConnectionError, TimeoutError, OSError, RuntimeError, Exception])
def test_without_a_status_any_error_is_an_outage(kind):
    assert is_outage(an_error(kind))


@pytest.mark.parametrize("kind", [ValueError, TypeError, NotImplementedError])
def test_except_one_about_values(kind):
    assert not is_outage(an_error(kind))


@pytest.mark.parametrize(
    "name",
    [
        "ContextWindowExceededError",
        "ContextOverflowError",
        "ContentFilterFinishReasonError",
        "LengthFinishReasonError",
        "BlockedPromptException",
        "OutputParserException",
    ],
)
def test_and_except_one_whose_name_says_what_was_wrong_with_the_request(name):
    assert not is_outage(an_error(name=name))


def test_a_network_error_that_is_a_value_error_too_is_an_outage():
    class InvalidJSON(OSError, ValueError):
        """As `requests` has them."""

    assert is_outage(InvalidJSON("half a body"))
