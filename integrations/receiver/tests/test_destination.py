"""The receiver does not send to itself."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from ragspan import ConfigurationError
from ragspan_receiver.command import check_destination


@pytest.fixture(autouse=True)
def nothing_is_set(monkeypatch):
    for name in ("OTEL_TRACES_EXPORTER", "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("host", "endpoint", "is_itself"),
    [
        ("127.0.0.1", "http://localhost:4318", True),
        ("127.0.0.1", "http://127.0.0.1:4318/v1/traces", True),
        ("0.0.0.0", "http://127.0.0.1:4318", True),
        ("::", "http://[::1]:4318", True),
        ("127.0.0.1", "localhost:4318", True),
        ("ragspan", "http://ragspan:4318", True),
        ("0.0.0.0", "http://another:4318", False),
        ("127.0.0.1", "http://localhost:4319", False),
        ("0.0.0.0", "http://192.0.2.1:4318", False),
        ("127.0.0.1", "http://[:4318", False),
        ("127.0.0.1", "https://backend.invalid", False),
        ("127.0.0.1", None, True),  # where exporters send that are given no endpoint
    ],
)
def test_an_endpoint_that_is_the_receiver_is_refused(monkeypatch, host, endpoint, is_itself):
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "otlp")
    if endpoint is not None:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)

    with pytest.raises(ConfigurationError, match="which is this receiver") if is_itself else nullcontext():
        check_destination(host, 4318)


def test_an_exporter_that_is_not_otlp_is_fine(monkeypatch):
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "console")

    check_destination("127.0.0.1", 4318)
