import json
import threading

import pytest

from ragspan import Settings
from ragspan.doctor import examine
from ragspan.doctor.endpoint import endpoint_findings
from ragspan.doctor.record import pass_through_helper, record_diagnosis
from ragspan.doctor.watching import NAME, watch_record

HERE = Settings(judging="thread")
"""Scored in this process: a helper that starts up takes its time."""


def passed(settings=HERE, *, seconds=15.0):
    watched = watch_record(settings, seconds)
    return record_diagnosis(watched, endpoint_findings(watched, 1.0))


def by_id(spans):
    return {span.span_id: span for span in spans}


@pytest.fixture
def sent_to(otlp_listener, set_variables):
    set_variables(OTEL_EXPORTER_OTLP_ENDPOINT=otlp_listener.url)
    return otlp_listener


def test_the_scores_arrive_on_the_span_whose_ids_are_told(sent_to):
    diagnosis = passed()

    scored, ids = diagnosis.findings
    arrived = by_id(sent_to.spans)[ids.facts["span_id"]]
    assert [finding.state for finding in diagnosis.findings] == ["ok", "ok"]
    assert arrived.name == f"invoke_workflow {NAME}"
    assert arrived.trace_id == ids.facts["trace_id"]
    assert arrived.attributes["ragspan.record_id"] == ids.facts["record_id"]
    assert scored.facts["scores"] == {
        name.removeprefix("ragspan.score."): value
        for name, value in arrived.attributes.items()
        if name.startswith("ragspan.score.")
    }
    assert len(scored.facts["scores"]) == 4


def test_the_answer_is_below_a_span_that_has_no_parent(sent_to):
    passed()

    [root] = [span for span in sent_to.spans if not span.parent_id]
    [answer] = [span for span in sent_to.spans if span.parent_id]
    assert (root.name, answer.parent_id) == (NAME, root.span_id)


def test_it_is_told_how_the_tool_that_answers_finds_it(sent_to):
    sent_to.answers(200, b"", x_phoenix_server_version="20.26.1")

    ids = passed().findings[-1]

    assert f"attributes['ragspan']['record_id'] == '{ids.facts['record_id']}'" in ids.advice


@pytest.mark.parametrize(("status", "body", "kind"), [(500, b"", "text/plain"), (302, b"", "text/plain")])
def test_an_endpoint_that_takes_nothing_fails_it_whatever_the_exporter_says(sent_to, status, body, kind):
    sent_to.answers(status, body, Content_Type=kind)

    scored, delivered, _ = passed().findings

    assert (scored.state, delivered.state) == ("ok", "failed")


def test_what_is_logged_on_the_way_is_a_warning_where_the_record_gets_through(sent_to, set_variables):
    set_variables(OTEL_METRICS_EXPORTER="otlp")
    sent_to.answer = lambda path: (200 if "traces" in path else 405, {}, b"")

    findings = passed().findings

    assert [finding.state for finding in findings] == ["ok", "warning", "ok"]
    assert "metrics" in findings[1].found


def test_without_an_exporter_the_span_is_shown_and_said_to_go_nowhere():
    diagnosis = passed()

    scored, delivered, ids = diagnosis.findings
    assert (scored.state, delivered.state) == ("ok", "failed")
    assert "goes nowhere" in delivered.found
    assert ids.advice is None
    assert any("ragspan.score.faithfulness" in span.attributes for span in diagnosis.spans)


def test_the_span_is_shown_even_if_the_helper_was_to_export_it_where_no_exporter_is():
    diagnosis = passed(Settings(judging="thread", export="helper"))

    assert any("ragspan.score.faithfulness" in span.attributes for span in diagnosis.spans)


def test_scores_that_come_late_are_told_as_well(sent_to, fake_openai):
    def slowly(request):
        threading.Event().wait(0.3)  # a provider's latency
        vote = {"answer": {"grounding": {"reasoning": "It is all there.", "verdict": "grounded"}}}
        return fake_openai.says(*[json.dumps(vote)] * request.get("n", 1))

    fake_openai.answer = slowly
    settings = Settings(
        judge="openai:slow",
        judge_base_url=fake_openai.base_url,
        metrics=("context_adherence",),
        score_wait=0.05,
    )

    scored, _ = passed(settings).findings

    assert scored.facts["scores"] == {"context_adherence": 1.0}
    assert "evaluation context_adherence" in {span.name for span in sent_to.spans}


def test_a_share_of_traces_or_of_answers_does_not_keep_the_record_from_being_scored(sent_to, set_variables):
    set_variables(OTEL_TRACES_SAMPLER="traceidratio", OTEL_TRACES_SAMPLER_ARG="0.01")

    diagnosis = passed(Settings(judging="thread", sample_rate=0.0))

    assert [finding.state for finding in diagnosis.findings] == ["ok", "ok"]


def test_a_sampler_that_keeps_nothing_fails_and_the_rest_is_looked_at_all_the_same(sent_to, set_variables):
    set_variables(OTEL_TRACES_SAMPLER="always_off")

    scored, sampled, _ = passed().findings

    assert (scored.state, sampled.state) == ("ok", "failed")
    assert "the sampler has kept none of" in sampled.found
    assert NAME in [span.name for span in sent_to.spans]


def test_scores_alone_are_found_on_spans_below_the_one_that_the_answer_ran_in(sent_to):
    diagnosis = passed(Settings(judging="thread", spans="scores"))

    scored, _ = diagnosis.findings
    assert scored.state == "ok"
    assert len(scored.facts["scores"]) == 4
    assert {span.name for span in sent_to.spans if span.parent_id} == {
        f"evaluation {metric}" for metric in scored.facts["scores"]
    }


def test_a_judge_that_fails_is_told_for_each_metric(sent_to, fake_openai):
    fake_openai.answer = lambda _request: fake_openai.fails(404, "no such model")

    scored, _ = passed(
        Settings(judge="openai:none", judge_base_url=fake_openai.base_url, metrics=("completeness",))
    ).findings

    assert scored.state == "failed"
    assert scored.facts["unscored"] == {"completeness": "NotFoundError"}


def test_a_judge_that_hangs_is_given_up_in_time(sent_to, fake_openai):
    fake_openai.answer = lambda _request: fake_openai.hangs()

    scored, *_ = passed(Settings(judge="openai:slow", judge_base_url=fake_openai.base_url), seconds=1.0).findings

    assert scored.state == "failed"
    assert set(scored.facts["unscored"].values()) == {"timeout"}


def test_a_record_that_cannot_be_redacted_is_said_to_be_dropped(sent_to, monkeypatch):
    monkeypatch.setenv("RAGSPAN_REDACT", "builtins:len")
    scored, *_ = passed(Settings.from_environment()).findings

    assert scored.state == "failed"
    assert "dropped: redaction_failed" in scored.found
    assert "RAGSPAN_REDACT" in scored.advice


@pytest.mark.parametrize("variables", [{"RAGSPAN_ENABLED": "false"}, {"OTEL_SDK_DISABLED": "true"}])
def test_nothing_is_tried_where_everything_is_switched_off(set_variables, variables):
    set_variables(**variables)

    [*_, finding] = [finding for diagnosis in examine() for finding in diagnosis.findings]

    assert (finding.check, finding.state) == ("record", "skipped")
    assert next(iter(variables)) in finding.found


def test_settings_of_the_sdk_that_it_refuses_are_a_misuse(sent_to, set_variables):
    set_variables(OTEL_BSP_MAX_EXPORT_BATCH_SIZE="100", OTEL_BSP_MAX_QUEUE_SIZE="10", RAGSPAN_JUDGING="thread")

    [*_, finding] = [finding for diagnosis in examine() for finding in diagnosis.findings]

    assert finding.is_misuse
    assert "OpenTelemetry cannot be set up as OTEL_* says" in finding.found


@pytest.mark.slow
def test_the_helper_exports_a_record_of_its_own(sent_to):
    finding = pass_through_helper(Settings(export="helper"), 30.0)

    [answer] = [span for span in sent_to.spans if span.name == f"invoke_workflow {NAME}"]
    assert (finding.check, finding.state) == ("helper", "ok")
    assert "ragspan.score.faithfulness" in answer.attributes


@pytest.mark.slow
def test_a_helper_that_cannot_export_is_told(sent_to):
    sent_to.answers(500)

    finding = pass_through_helper(Settings(export="helper"), 30.0)

    assert finding.state == "failed"
    assert "RAGSPAN_EXPORT=application" in finding.advice
