"""Where Phoenix is found."""

from __future__ import annotations

import pytest

from ragspan import ConfigurationError
from ragspan.tools.phoenix import PhoenixEmitter


@pytest.fixture
def locate_in(monkeypatch):
    def locate_there(environment, **given):
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        return PhoenixEmitter(**given).client.endpoint

    return locate_there


@pytest.mark.parametrize(
    ("environment", "address"),
    [
        ({}, "http://127.0.0.1:6006"),
        ({"PHOENIX_COLLECTOR_ENDPOINT": "http://phoenix.test:6006/v1/traces"}, "http://phoenix.test:6006"),
        (
            {"PHOENIX_ENDPOINT": "http://first.test", "PHOENIX_COLLECTOR_ENDPOINT": "http://second.test"},
            "http://first.test",
        ),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector.test:6006"}, "http://collector.test:6006"),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector.test:4317"}, "http://127.0.0.1:6006"),
    ],
)
def test_it_is_found_as_phoenixs_own_client_finds_it(locate_in, environment, address):
    assert locate_in(environment).url == address


@pytest.mark.parametrize(
    ("environment", "arguments", "headers"),
    [
        ({"PHOENIX_API_KEY": "k"}, {}, {"authorization": "Bearer k"}),
        ({"PHOENIX_API_KEY": "k"}, {"api_key": "mine"}, {"authorization": "Bearer mine"}),
        (
            {"PHOENIX_API_KEY": "k", "PHOENIX_CLIENT_HEADERS": "X-A=b%20c, X-D=e=f"},
            {},
            {"x-a": "b c", "x-d": "e=f", "authorization": "Bearer k"},
        ),
    ],
)
def test_headers_and_key_are_those_that_were_given_or_else_the_environments(locate_in, environment, arguments, headers):
    assert locate_in(environment, **arguments).headers == headers


@pytest.mark.parametrize(
    ("name", "value"),
    [("PHOENIX_ENDPOINT", "phoenix.test"), ("PHOENIX_COLLECTOR_ENDPOINT", "ftp://user:password@phoenix.test")],
)
def test_an_address_that_is_none_is_named_and_not_shown(locate_in, name, value):
    with pytest.raises(ConfigurationError, match=f"^{name} should be an address such as http://host:port$"):
        locate_in({name: value})
