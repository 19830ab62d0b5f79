"""What the doctor says of settings and of what is installed."""

import pytest

from ragspan.doctor.examination import Secrets


@pytest.fixture(autouse=True)
def off(set_variables):
    """Nothing but the settings is looked at, unless a test says otherwise."""
    set_variables(OTEL_SDK_DISABLED="true")


def test_what_is_set_is_shown_but_no_secret(examined):
    findings = examined(
        RAGSPAN_METRICS="faithfulness,completeness",
        RAGSPAN_JUDGE_API_KEY="very-secret",
        RAGSPAN_JUDGE_BASE_URL="http://user:hidden@localhost:1/v1?k=hush",
    )

    assert findings[0].facts["variables"] == {
        "RAGSPAN_JUDGE_API_KEY": "(set)",
        "RAGSPAN_JUDGE_BASE_URL": "http://localhost:1/v1",
        "RAGSPAN_JUDGING": "thread",
        "RAGSPAN_METRICS": "faithfulness,completeness",
    }
    assert "very-secret" not in repr(findings)


def test_a_wrong_value_is_a_misuse_with_the_words_of_the_error_and_nothing_is_tried(examined, otlp_listener):
    findings = examined(RAGSPAN_SAMPLE_RATE="2", OTEL_EXPORTER_OTLP_ENDPOINT=otlp_listener.url)

    assert (findings[0].state, findings[0].is_misuse) == ("failed", True)
    assert findings[0].found == "RAGSPAN_SAMPLE_RATE is '2', but should be a number from 0 to 1"
    assert [findings.of(check).states() for check in ("judge", "endpoint", "record")] == [["skipped"]] * 3


@pytest.mark.parametrize(
    ("variables", "code", "advice"),
    [
        ({"RAGSPAN_JUGDE": "overlap"}, "without_effect", "docs/settings.md"),
        ({"RAGSPAN_JUDGE_OPTIONS": '{"timeout": 5}'}, "without_effect", "docs/settings.md"),
        ({"RAGSPAN_EMITTERS": "console", "OTEL_TRACES_EXPORTER": "console"}, "no_otel_emitter", "to otel,console"),
        ({"OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT": "16"}, "few_attributes", "64 or more"),
        ({"OTEL_ATTRIBUTE_COUNT_LIMIT": "16"}, "few_attributes", "64 or more"),
        ({"OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT": "10"}, "short_attributes", "32 at least"),
    ],
    ids=str,
)
def test_what_may_be_wrong_is_a_warning_with_advice(examined, variables, code, advice):
    (warning,) = [finding for finding in examined(**variables) if finding.state == "warning"]

    assert warning.code == code
    assert next(iter(variables)) in warning.found
    assert advice in warning.advice


def test_a_tool_alone_leaves_no_span_out(examined):
    """An application makes spans for it."""
    findings = examined(RAGSPAN_EMITTERS="phoenix,mlflow", OTEL_TRACES_EXPORTER="console")

    assert "no_otel_emitter" not in findings.codes()


def test_the_versions_of_frameworks_and_integrations_are_reported(examined):
    [versions] = [finding.facts["versions"] for finding in examined() if "versions" in finding.facts]

    assert {"python", "ragspan", "ragspan-langchain", "langchain-core", "llama-index-core"} < set(versions)
    assert None not in versions.values()


@pytest.mark.parametrize(
    ("variables", "code"),
    [
        ({"RAGSPAN_ENABLED": "false"}, "turned_off"),
        ({"RAGSPAN_SAMPLE_RATE": "0"}, "sample_rate_zero"),
        ({"OTEL_SDK_DISABLED": "true"}, "sdk_disabled"),
    ],
)
def test_what_switches_scores_off_fails_and_nothing_is_asked(examined, variables, code):
    findings = examined(**variables)

    assert code in findings.of("settings").codes("failed")
    assert findings.of("record").states() == ["skipped"]


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20t0ps3cret", "Bearer t0ps3cret"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "x=1,api-key=t0ps3cret", "the key t0ps3cret"),
        ("OTEL_EXPORTER_OTLP_LOGS_HEADERS", "authorization: Bearer t0ps3cret", "token t0ps3cret"),
        ("OPENAI_API_KEY", "t0ps3cret", "key=t0ps3cret"),
        ("RAGSPAN_SINK", "nats://user:t0ps3cret@broker:4222", "no user:t0ps3cret here"),
        ("MLFLOW_TRACKING_TOKEN", "t0ps3cret", "token t0ps3cret"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://user:t0ps3cret@localhost:4318", "user:t0ps3cret"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:4318/?t0ps3cret", "?t0ps3cret"),
        ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://localhost:4318/t0ps3cret/v1/traces", "/t0ps3cret/v1/traces"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "user:t0ps3cret@localhost:4317", "user:t0ps3cret"),
        ("RAGSPAN_JUDGE_BASE_URL", "http://localhost/v1?key=t0ps3cret&x=1", "the key t0ps3cret"),
        ("OPENAI_BASE_URL", "http://localhost/v1/t0ps3cret/", "no such path: /v1/t0ps3cret"),
        ("https_proxy", "http://user:t0ps3cret@localhost:3128", "user:t0ps3cret"),
    ],
)
def test_what_the_environment_keeps_secret_is_taken_out_of_words(set_variables, name, value, words):
    set_variables(**{name: value})

    assert "t0ps3cret" not in Secrets().hide(words)


def test_other_words_stay_and_none_are_endless_or_move_the_cursor(set_variables):
    set_variables(OTEL_EXPORTER_OTLP_HEADERS="x-mlflow-experiment-id=1")
    secrets = Secrets()

    assert secrets.hide("HTTP 401: not here\nsee above") == "HTTP 401: not here\nsee above"
    assert secrets.hide("Incorrect API key provided: sk-abc123") == "Incorrect API key provided: [secret]"
    assert "\x1b" not in secrets.hide("\x1b[2Jhello")
    assert len(secrets.hide("x" * 10_000)) < 1000
