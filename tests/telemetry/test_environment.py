"""Providers as the `OTEL_*` variables describe them, exporting to a real endpoint on this machine."""

from __future__ import annotations

import os

import pytest
from opentelemetry._logs import LogRecord

from ragspan.exceptions import ConfigurationError
from ragspan.telemetry.providers import exporter_names, providers_from_environment


@pytest.fixture
def set_variables(monkeypatch):
    """Makes these the only variables of OpenTelemetry's."""
    for name in [name for name in os.environ if name.startswith("OTEL_")]:
        monkeypatch.delenv(name)

    def set_all(**variables):
        for name, value in variables.items():
            monkeypatch.setenv(f"OTEL_{name}", value)

    return set_all


@pytest.fixture
def make_providers():
    """Makes providers that are shut down at the end."""
    made = []

    def make(*args, **options):
        made.append(providers_from_environment(*args, **options))
        return made[-1]

    yield make
    for providers in made:
        providers.shutdown()


@pytest.mark.parametrize(
    ("variables", "signal", "names"),
    [
        ({}, "traces", []),
        ({"EXPORTER_OTLP_ENDPOINT": "http://host:4318"}, "traces", ["otlp"]),
        ({"EXPORTER_OTLP_ENDPOINT": "http://host:4318"}, "metrics", []),
        ({"EXPORTER_OTLP_ENDPOINT": "http://host:4318", "TRACES_EXPORTER": "none"}, "traces", []),
        ({"TRACES_EXPORTER": "otlp, console"}, "traces", ["otlp", "console"]),
    ],
)
def test_exporters_are_named_by_their_variable_or_by_an_endpoint_for_spans(set_variables, variables, signal, names):
    set_variables(**variables)

    assert exporter_names(signal) == names


def test_all_signals_are_sent_where_the_environment_says(set_variables, make_providers, otlp_listener):
    set_variables(
        EXPORTER_OTLP_ENDPOINT=otlp_listener.url, METRICS_EXPORTER="otlp", LOGS_EXPORTER="otlp", SERVICE_NAME="shop"
    )
    providers = make_providers()
    providers.tracer_provider.get_tracer("test").start_span("span").end()
    providers.meter_provider.get_meter("test").create_counter("counter").add(1)
    providers.logger_provider.get_logger("test").emit(LogRecord(body="event"))
    providers.tracer_provider.force_flush()
    providers.meter_provider.force_flush()
    providers.logger_provider.force_flush()

    assert sorted(otlp_listener.requests) == ["/v1/logs", "/v1/metrics", "/v1/traces"]
    [span] = otlp_listener.spans
    assert (span.name, span.resource["service.name"]) == ("span", "shop")


@pytest.mark.parametrize("signal", ["TRACES", "METRICS", "LOGS"])
def test_an_exporter_that_is_not_installed_is_an_error_that_says_what_there_is(set_variables, signal):
    set_variables(**{f"{signal}_EXPORTER": "zipkin-of-old"})

    with pytest.raises(
        ConfigurationError, match=f"OTEL_{signal}_EXPORTER asks for the exporter 'zipkin-of-old'.*otlp_proto_http"
    ):
        providers_from_environment()


def test_an_endpoint_without_its_exporter_is_an_error_that_names_the_endpoint_and_the_extra(set_variables, monkeypatch):
    monkeypatch.setattr("ragspan.telemetry.providers.entry_points", lambda **_: [])
    set_variables(EXPORTER_OTLP_ENDPOINT="http://localhost:4318")

    with pytest.raises(ConfigurationError) as told:
        providers_from_environment()
    assert str(told.value) == (
        "OTEL_EXPORTER_OTLP_ENDPOINT asks for the exporter 'otlp_proto_http', but none is installed; there are: none; for "
        'otlp: pip install "ragspan[otlp]", and for its protocol grpc: pip install opentelemetry-exporter-otlp-proto-grpc'
    )


@pytest.mark.parametrize("name", ["EXPORTER_OTLP_PROTOCOL", "EXPORTER_OTLP_TRACES_PROTOCOL"])
def test_a_protocol_that_nobody_knows_is_an_error_that_names_it(set_variables, name):
    set_variables(TRACES_EXPORTER="otlp", **{name: "smoke signals"})

    with pytest.raises(ConfigurationError, match=f"OTEL_{name} is 'smoke signals', but should be one of grpc"):
        providers_from_environment()


def test_an_address_without_a_scheme_is_an_error_that_names_it(set_variables):
    set_variables(EXPORTER_OTLP_ENDPOINT="localhost:4318", EXPORTER_OTLP_PROTOCOL="http/protobuf")

    with pytest.raises(ConfigurationError, match="OTEL_EXPORTER_OTLP_ENDPOINT should be an address such as http://"):
        providers_from_environment()
