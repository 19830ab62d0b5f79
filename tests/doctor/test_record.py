"""What one record shows of the judge and of itself."""

import json

import pytest

from ragspan.doctor import exit_code
from ragspan.doctor.record import NAME

KEY = "sk-test-0123456789"
GROUNDED = json.dumps({"answer": {"grounding": {"reasoning": "It says so.", "verdict": "grounded"}}})


def test_the_scores_arrive_on_the_span_whose_ids_are_told(examined, sent_to):
    scored, ids = findings = examined(RAGSPAN_SAMPLE_RATE="0.001").of("record")

    [arrived] = [span for span in sent_to.spans if span.span_id in ids.found]
    assert findings.codes() == ["scored", "arrived"]
    assert arrived.name == f"invoke_workflow {NAME}"
    assert f"trace_id {arrived.trace_id}" in ids.found
    record_id = arrived.attributes["ragspan.record_id"]
    assert f"attributes['ragspan']['record_id'] == '{record_id}'" in ids.advice
    assert f"faithfulness {arrived.attributes['ragspan.score.faithfulness']:.2f}" in scored.found
    [root] = [span for span in sent_to.spans if not span.parent_id]
    assert (root.name, arrived.parent_id) == (NAME, root.span_id)


PRICED = {"RAGSPAN_JUDGE": "openai:any", "RAGSPAN_JUDGE_OPTIONS": '{"price": [1, 1]}'}


@pytest.mark.parametrize(
    ("variables", "codes"),
    [
        ({"RAGSPAN_REDACT": "builtins:len"}, ["dropped"]),
        ({**PRICED, "RAGSPAN_BUDGET_USD_PER_DAY": "1e-9"}, ["judge_not_asked", "not_scored"]),
        ({"RAGSPAN_JUDGE": "openai:any", "RAGSPAN_METRICS": "completeness"}, ["judge_failed", "not_scored"]),
    ],
    ids=["redaction", "budget", "judge"],
)
def test_what_keeps_an_answer_from_its_score_is_said_once(examined, sent_to, fake_openai, variables, codes):
    fake_openai.answer = lambda _request: fake_openai.fails(404, "no such model")
    variables = {"RAGSPAN_JUDGE_BASE_URL": fake_openai.base_url, "RAGSPAN_JUDGE_API_KEY": "k", **variables}

    assert [one.code for one in examined(**variables) if one.check in {"judge", "record"}] == codes


@pytest.mark.parametrize(
    ("variables", "state", "code"),
    [
        ({}, "warning", "no_exporter"),  # the README's first program
        ({"RAGSPAN_EMITTERS": "console"}, "ok", "printed"),
        ({"RAGSPAN_EMITTERS": "otel"}, "failed", "no_exporter"),
        ({"OTEL_TRACES_EXPORTER": "none"}, "failed", "no_exporter"),
        ({"OTEL_TRACES_EXPORTER": "console"}, "ok", "arrived"),
        ({"OTEL_TRACES_EXPORTER": "nonsense"}, "failed", "wrong_setting"),
        ({"OTEL_TRACES_EXPORTER": "console", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "0"}, "failed", "wrong_setting"),
    ],
)
def test_without_an_exporter_it_says_where_scores_go(examined, variables, state, code):
    findings = examined(**variables)

    assert (findings[-1].state, findings[-1].code) == (state, code)
    assert exit_code(findings) == {"wrong_setting": 2}.get(code, int(state == "failed"))


def test_a_tool_that_refuses_the_scores_is_named(examined, otlp_listener):
    otlp_listener.answers(401)

    findings = examined(RAGSPAN_EMITTERS="phoenix", PHOENIX_COLLECTOR_ENDPOINT=otlp_listener.url)

    assert (findings[-1].code, exit_code(findings)) == ("tool_refused_scores", 1)


def test_a_tool_that_takes_the_scores_is_named(examined, otlp_listener):
    otlp_listener.answers(200, b'{"data": [{"id": "1"}]}', Content_Type="application/json")
    findings = examined(RAGSPAN_EMITTERS="phoenix", PHOENIX_COLLECTOR_ENDPOINT=otlp_listener.url)

    assert findings.codes("ok")[-2:] == ["tool_took_scores", "arrived"]


def test_a_tool_that_is_no_configured_exporter_gets_the_whole_trace(examined, otlp_listener):
    examined(RAGSPAN_EMITTERS="phoenix", PHOENIX_COLLECTOR_ENDPOINT=otlp_listener.url)

    [root] = [span for span in otlp_listener.spans if not span.parent_id]
    assert {span.parent_id for span in otlp_listener.spans} == {root.parent_id, root.span_id}


def test_where_a_tool_has_runs_of_its_own_tracer_that_no_score_went_there_is_no_failure(examined, otlp_listener):
    findings = examined(
        RAGSPAN_EMITTERS="langsmith",
        LANGSMITH_TRACING="true",
        LANGSMITH_API_KEY="k",
        LANGSMITH_ENDPOINT=otlp_listener.url,
    )

    assert (findings[-1].state, findings[-1].code) == ("skipped", "tool_has_other_runs")
    assert exit_code(findings) == 0


@pytest.fixture
def asked(examined, fake_openai):
    """What one record shows about a language model that replies so."""

    def ask(reply, *, timeout=60.0):
        fake_openai.answer = reply
        return examined(
            timeout=timeout,
            RAGSPAN_JUDGE="openai:tiny",
            RAGSPAN_JUDGE_BASE_URL=fake_openai.base_url,
            RAGSPAN_JUDGE_API_KEY=KEY,
            RAGSPAN_METRICS="context_adherence",
        ).of("judge")[0]

    return ask


@pytest.mark.parametrize(
    ("verdict", "options", "code", "cost"),
    [
        ("grounded", '{"price": [1, 10, 0.5]}', "judge_answered", "$0.001100"),
        ("not_grounded", "{}", "judge_fails_good_answer", "its price is not known"),
    ],
)
def test_what_the_judge_took_is_told(asked, fake_openai, set_variables, verdict, options, code, cost):
    usage = {"prompt_tokens": 900, "completion_tokens": 60, "prompt_tokens_details": {"cached_tokens": 800}}
    set_variables(RAGSPAN_JUDGE_OPTIONS=options)
    reply = GROUNDED.replace("grounded", verdict)
    finding = asked(lambda request: fake_openai.says(*[reply] * request.get("n", 1), usage=usage))

    assert finding.code == code
    assert f"requests 1, tokens 900 in, 60 out; {cost}" in finding.found


@pytest.mark.parametrize(
    ("reply", "error_type"),
    [
        (401, "AuthenticationError"),
        (429, "RateLimitError"),
        (500, "InternalServerError"),
        ("Certainly!", "InvalidVerdict"),
        ("hangs", "timeout"),
    ],
)
def test_each_failure_of_the_judge_is_reported_with_what_to_do(asked, fake_openai, set_variables, reply, error_type):
    set_variables(RAGSPAN_JUDGE_OPTIONS='{"max_retries": 0}')

    def answer(request):
        if reply == "hangs":
            return fake_openai.hangs()
        return fake_openai.says(reply) if isinstance(reply, str) else fake_openai.fails(reply, f"no, {KEY}")

    finding = asked(answer, timeout=4.0 if reply == "hangs" else 20.0)

    assert (finding.state, error_type in finding.found) == ("failed", True)
    assert KEY not in repr(finding)
