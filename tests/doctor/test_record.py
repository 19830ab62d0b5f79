from importlib.metadata import EntryPoints, entry_points

import pytest

from ragspan.doctor import exit_code
from ragspan.doctor.watching import NAME
from ragspan.telemetry import environment


@pytest.fixture
def passed(examined):
    """What is found about a record that is sent with these settings."""

    def pass_through(*, timeout=20.0, **settings):
        variables = {f"RAGSPAN_{name.upper()}": value for name, value in settings.items()}
        return examined(timeout=timeout, **variables).of("record")

    return pass_through


def test_the_scores_arrive_on_the_span_whose_ids_are_told(passed, sent_to):
    scored, ids = findings = passed()

    [arrived] = [span for span in sent_to.spans if span.span_id == ids.facts["span_id"]]
    assert findings.states() == ["ok", "ok"]
    assert arrived.name == f"invoke_workflow {NAME}"
    assert arrived.trace_id == ids.facts["trace_id"]
    assert arrived.attributes["ragspan.record_id"] == ids.facts["record_id"]
    assert scored.facts["scores"] == {
        name.removeprefix("ragspan.score."): value
        for name, value in arrived.attributes.items()
        if name.startswith("ragspan.score.")
    }
    assert len(scored.facts["scores"]) == 4
    [root] = [span for span in sent_to.spans if not span.parent_id]
    assert (root.name, arrived.parent_id) == (NAME, root.span_id)
    assert f"attributes['ragspan']['record_id'] == '{ids.facts['record_id']}'" in ids.advice


@pytest.mark.parametrize("status", [500, 302])
def test_an_endpoint_that_takes_nothing_fails_it_whatever_the_exporter_says(passed, sent_to, status):
    sent_to.answers(status, b"", Content_Type="text/plain")

    assert passed().states() == ["ok", "failed", "skipped"]


def test_what_is_logged_on_the_way_is_a_warning_where_the_record_gets_through(passed, sent_to, set_variables):
    set_variables(OTEL_METRICS_EXPORTER="otlp")
    sent_to.answer = lambda path: (200 if "traces" in path else 405, {}, b"")

    findings = passed()

    assert findings.states() == ["ok", "warning", "ok"]
    assert findings[1].code == "logged_export"


@pytest.mark.parametrize(
    ("variables", "states", "code"),
    [
        (
            {"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0.01", "RAGSPAN_SAMPLE_RATE": "0.0"},
            ["ok", "ok", "ok"],
            "sampler_keeps_some",
        ),
        ({"OTEL_TRACES_SAMPLER": "always_off"}, ["ok", "failed", "ok"], "sampler_keeps_none"),
        ({"RAGSPAN_REDACT": "builtins:len"}, ["failed", "ok"], "redaction_failed"),
        (
            {
                "RAGSPAN_JUDGE": "openai:any",
                "RAGSPAN_BUDGET_USD_PER_DAY": "1e-9",
                "RAGSPAN_JUDGE_OPTIONS": '{"price": [1, 1]}',
            },
            ["failed", "ok"],
            "budget_exhausted",
        ),
        (
            {"RAGSPAN_JUDGE": "openai:any", "RAGSPAN_METRICS": "completeness"},
            ["failed", "ok"],
            "not_scored",
        ),
    ],
    ids=["sampled", "never sampled", "redaction", "budget", "judge"],
)
def test_what_keeps_an_answer_from_its_score_is_said(examined, sent_to, fake_openai, variables, states, code):
    fake_openai.answer = lambda _request: fake_openai.fails(404, "no such model")
    variables = {"RAGSPAN_JUDGE_BASE_URL": fake_openai.base_url, "RAGSPAN_JUDGE_API_KEY": "k", **variables}

    findings = examined(**variables).of("record")

    assert findings.states() == states
    assert code in findings.codes()
    assert NAME in [span.name for span in sent_to.spans]


def test_without_an_exporter_the_record_is_scored_and_printed_by_an_application(passed):
    """The README's first program: no variable is set."""
    findings = passed()

    assert findings.states() == ["ok", "warning", "skipped"]
    assert findings[1].code == "no_exporter"
    assert exit_code(findings) == 0


def test_the_console_by_name_is_all_that_scores_need(examined):
    findings = examined(RAGSPAN_EMITTERS="console")

    assert findings.of("record").states() == ["ok", "ok", "skipped"]
    assert exit_code(findings) == 0


@pytest.mark.parametrize(
    "variables", [{"RAGSPAN_EMITTERS": "otel"}, {"OTEL_TRACES_EXPORTER": "none"}], ids=lambda given: next(iter(given))
)
def test_where_scores_go_nowhere_it_fails(examined, variables):
    findings = examined(**variables).of("record")

    assert findings.states() == ["ok", "failed", "skipped"]
    assert findings.codes() == ["scored", "no_exporter", "span_not_sent"]
    assert "was not sent" in findings[2].found


def test_scores_alone_are_found_on_spans_below_the_one_that_the_answer_ran_in(passed, sent_to):
    scored, _ = passed(spans="scores")

    assert len(scored.facts["scores"]) == 4
    assert {span.name for span in sent_to.spans if span.parent_id} == {
        f"evaluation {metric}" for metric in scored.facts["scores"]
    }


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        (
            {"OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "100", "OTEL_BSP_MAX_QUEUE_SIZE": "10"},
            "OpenTelemetry cannot be set up as OTEL_* says",
        ),
        ({"OTEL_TRACES_EXPORTER": "zipkin"}, "OTEL_TRACES_EXPORTER asks for 'zipkin'"),
        ({"OTEL_EXPORTER_OTLP_PROTOCOL": "smoke"}, "OTEL_EXPORTER_OTLP_PROTOCOL is 'smoke'"),
        ({"RAGSPAN_REDACT": "no_such_module:mask"}, "no_such_module cannot be imported: ModuleNotFoundError"),
    ],
)
def test_settings_with_which_the_application_would_not_start_are_a_misuse(examined, sent_to, variables, words):
    finding = examined(**variables)[-1]

    assert finding.is_misuse
    assert words in finding.found


@pytest.mark.parametrize(
    ("protocol", "words"),
    [
        ("grpc", "OTLP over gRPC, but none is installed: pip install opentelemetry-exporter-otlp-proto-grpc"),
        ("http/protobuf", "OTLP over HTTP, but none is installed: pip install 'ragspan[otlp]'"),
        ("http/json", "OTLP as JSON, but none is installed: set it to http/protobuf"),
    ],
)
def test_an_exporter_that_is_not_installed_is_named_with_the_variable_that_asks_for_it(
    examined, sent_to, monkeypatch, protocol, words
):
    known = entry_points(group="opentelemetry_traces_exporter")
    others = [entry for entry in known if not entry.name.startswith("otlp")]
    monkeypatch.setattr(environment, "entry_points", EntryPoints(others).select)

    finding = examined(OTEL_EXPORTER_OTLP_PROTOCOL=protocol)[-1]

    assert finding.is_misuse
    assert f"OTEL_EXPORTER_OTLP_PROTOCOL asks for an exporter of {words}" in finding.found
