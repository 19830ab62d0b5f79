import pytest

from ragspan.doctor.findings import Finding
from ragspan.doctor.redaction import Redactor, header_names


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20t0ps3cret", "Bearer t0ps3cret"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "x=1,api-key=t0ps3cret", "the key t0ps3cret"),
        ("OTEL_EXPORTER_OTLP_LOGS_HEADERS", "authorization: Bearer t0ps3cret", "token t0ps3cret"),
        ("OPENAI_API_KEY", "t0ps3cret", "key=t0ps3cret"),
        ("RAGSPAN_JUDGE_API_KEY", "t0ps3cret", "key=t0ps3cret"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://user:t0ps3cret@localhost:4318", "user:t0ps3cret"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:4318/?t0ps3cret", "?t0ps3cret"),
        (
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
            "http://localhost:4318/t0ps3cret/v1/traces",
            "url: /t0ps3cret/v1/traces",
        ),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "user:t0ps3cret@localhost:4317", "user:t0ps3cret"),
        ("RAGSPAN_JUDGE_BASE_URL", "http://localhost/v1?key=t0ps3cret&x=1", "the key t0ps3cret"),
        ("OPENAI_BASE_URL", "http://localhost/v1/t0ps3cret/", "no such path: /v1/t0ps3cret"),
        ("https_proxy", "http://user:t0ps3cret@localhost:3128", "user:t0ps3cret"),
    ],
)
def test_what_the_environment_keeps_secret_is_taken_out_of_words(set_variables, name, value, words):
    set_variables(**{name: value})

    assert "t0ps3cret" not in Redactor().text(words)


def test_other_words_stay():
    assert Redactor().text("HTTP 404: not here\nsee above") == "HTTP 404: not here\nsee above"


def test_a_short_value_of_a_header_is_no_secret(set_variables):
    set_variables(OTEL_EXPORTER_OTLP_HEADERS="x-mlflow-experiment-id=1")

    assert Redactor().text("HTTP 401") == "HTTP 401"


def test_what_looks_like_a_key_is_taken_for_one():
    assert Redactor().text("Incorrect API key provided: sk-abc123") == "Incorrect API key provided: [secret]"


def test_control_characters_cannot_reach_the_terminal():
    assert "\x1b" not in Redactor().text("\x1b[2Jhello")


def test_endless_words_are_cut():
    assert len(Redactor().text("x" * 10_000)) < 1000


def test_every_part_of_a_finding_is_looked_through(set_variables):
    set_variables(OPENAI_API_KEY="t0ps3cret")
    finding = Finding(
        check="judge",
        state="failed",
        found="t0ps3cret",
        advice="t0ps3cret",
        facts={"a": "t0ps3cret", "b": ["t0ps3cret"], "c": {"d": "t0ps3cret"}, "e": 1},
    )

    assert "t0ps3cret" not in repr(Redactor().finding(finding))
    assert Redactor().finding(finding).facts["e"] == 1


def test_headers_are_named_in_lower_case_without_their_values():
    assert header_names(" Authorization=Bearer x=y , X-Tenant=2,nonsense") == ["authorization", "x-tenant"]
