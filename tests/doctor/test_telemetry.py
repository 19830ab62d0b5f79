import pytest

from ragspan import Settings
from ragspan.doctor.telemetry import examine_telemetry

ENDPOINT = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://localhost:4318"}


def findings(state, settings=None):
    return [finding for finding in examine_telemetry(settings or Settings()) if finding.state == state]


def test_without_an_exporter_scores_go_nowhere_and_it_says_what_to_set():
    [failed] = findings("failed")

    assert "no exporter is configured, so no score goes anywhere" in failed.found
    assert "OTEL_TRACES_EXPORTER=otlp" in failed.advice


def test_an_endpoint_alone_is_enough_for_spans(set_variables):
    set_variables(**ENDPOINT)

    exporters = {finding.facts["signal"]: finding.facts["exporter"] for finding in findings("ok") if finding.facts}

    assert exporters == {"traces": "otlp_proto_http"}
    assert findings("failed") == []


@pytest.mark.parametrize(
    ("variables", "advised"),
    [
        (ENDPOINT, "set OTEL_TRACES_EXPORTER=otlp and OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf as well"),
        ({**ENDPOINT, "OTEL_TRACES_EXPORTER": "otlp"}, "set OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf as well"),
        ({**ENDPOINT, "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}, "set OTEL_TRACES_EXPORTER=otlp as well"),
    ],
)
def test_what_opentelemetry_instrument_needs_besides_is_advised(set_variables, variables, advised):
    set_variables(**variables)

    [exporter] = [finding for finding in findings("ok") if finding.facts.get("signal") == "traces"]

    assert advised in exporter.advice


def test_an_exporter_that_is_named_in_full_needs_no_advice(set_variables):
    set_variables(OTEL_TRACES_EXPORTER="otlp_proto_http", **ENDPOINT)

    [exporter] = [finding for finding in findings("ok") if finding.facts.get("signal") == "traces"]

    assert exporter.advice is None


@pytest.mark.parametrize(
    ("variables", "complaint"),
    [
        ({"OTEL_TRACES_EXPORTER": "zipkin"}, "OTEL_TRACES_EXPORTER asks for 'zipkin'"),
        ({**ENDPOINT, "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "no such exporter is installed"),
        ({**ENDPOINT, "OTEL_EXPORTER_OTLP_PROTOCOL": "smoke"}, "OTEL_EXPORTER_OTLP_PROTOCOL is 'smoke'"),
    ],
)
def test_an_exporter_that_cannot_be_had_is_a_misuse(set_variables, variables, complaint):
    set_variables(**variables)

    [failed] = findings("failed")

    assert failed.is_misuse
    assert complaint in failed.found


def test_an_sdk_that_is_switched_off_fails(set_variables):
    set_variables(OTEL_SDK_DISABLED="true", **ENDPOINT)

    [failed] = findings("failed")

    assert "OTEL_SDK_DISABLED" in failed.found


@pytest.mark.parametrize(
    ("variables", "state"),
    [
        ({"OTEL_TRACES_SAMPLER": "always_off"}, "failed"),
        ({"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0"}, "failed"),
        ({"OTEL_TRACES_SAMPLER": "parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0.0"}, "warning"),
        ({"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "a tenth"}, "warning"),
        ({"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0.1"}, "ok"),
        ({"OTEL_TRACES_SAMPLER": "parentbased_always_on"}, "ok"),
    ],
)
def test_a_sampler_is_told_by_what_it_keeps(set_variables, variables, state):
    set_variables(**ENDPOINT, **variables)

    told = [finding for finding in findings(state) if "OTEL_TRACES_SAMPLER" in finding.found or "0.1" in finding.found]

    assert len(told) == 1


def test_a_sampler_that_keeps_nothing_only_warns_where_unsampled_answers_are_scored(set_variables):
    set_variables(OTEL_TRACES_SAMPLER="always_off", **ENDPOINT)

    assert findings("failed", Settings(score_unsampled=True)) == []


def test_large_batches_are_no_failure_but_smaller_ones_are_advised(set_variables):
    set_variables(**ENDPOINT)

    [batches] = [finding for finding in findings("ok") if "batches" in finding.found]

    assert "OTEL_BSP_MAX_EXPORT_BATCH_SIZE=16 OTEL_BSP_SCHEDULE_DELAY=50" in batches.advice


def test_recommended_batches_need_no_advice(set_variables):
    set_variables(OTEL_BSP_MAX_EXPORT_BATCH_SIZE="16", OTEL_BSP_SCHEDULE_DELAY="50", **ENDPOINT)

    [batches] = [finding for finding in findings("ok") if "batches" in finding.found]

    assert batches.advice is None


def test_batches_do_not_matter_where_the_helper_exports(set_variables):
    set_variables(**ENDPOINT)

    assert [finding for finding in findings("ok", Settings(export="helper")) if "batches" in finding.found] == []


@pytest.mark.parametrize(
    ("name", "value", "harm"),
    [
        ("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "16", "leaves out those that do not fit"),
        ("OTEL_ATTRIBUTE_COUNT_LIMIT", "16", "leaves out those that do not fit"),
        ("OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT", "10", "record ids and explanations are cut"),
    ],
)
def test_limits_that_are_too_small_for_scores_are_a_warning(set_variables, name, value, harm):
    set_variables(**ENDPOINT, **{name: value})

    [warning] = findings("warning")

    assert f"{name} is {value}" in warning.found
    assert harm in warning.found


def test_headers_are_told_by_their_names_alone(set_variables):
    set_variables(OTEL_EXPORTER_OTLP_HEADERS="Authorization=Bearer%20top-secret,x-tenant=7", **ENDPOINT)

    told = [finding for finding in examine_telemetry(Settings()) if "headers" in finding.found]

    assert [finding.facts["headers"] for finding in told] == [["authorization", "x-tenant"]]
    assert "top-secret" not in repr(told)


def test_headers_of_a_wrong_form_are_a_warning_that_does_not_repeat_them(set_variables):
    set_variables(OTEL_EXPORTER_OTLP_HEADERS="Authorization: Bearer top-secret", **ENDPOINT)

    [warning] = findings("warning")

    assert "OTEL_EXPORTER_OTLP_HEADERS holds something that is no header" in warning.found
    assert "top-secret" not in repr(warning)
