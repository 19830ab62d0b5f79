import dataclasses
import logging
import pkgutil
import sys
from types import SimpleNamespace

import pytest

from ragspan import ConfigurationError
from ragspan.config import Settings, is_enabled
from ragspan.process import in_use


@pytest.mark.parametrize("variables", [{}, {"OPENAI_API_KEY": "secret"}, {"RAGSPAN_JUDGE": " "}])
def test_without_variables_the_embedded_judge_scores_everything_also_where_there_is_an_api_key(variables):
    settings = Settings.from_environment(variables)

    assert settings == Settings()
    assert (settings.judge, settings.sample_rate) == ("overlap", 1.0)


READ = {
    "enabled": ("no", False),
    "judge": ("openai:GPT-4o-mini", "openai:GPT-4o-mini"),
    "judge_base_url": ("http://localhost:1/v1", "http://localhost:1/v1"),
    "judge_api_key": ("secret", "secret"),
    "judge_options": ('{"timeout": 60, "extra_body": {"a": 1}}', ({"timeout": 60, "extra_body": {"a": 1}},)),
    "metrics": ("faithfulness, completeness,faithfulness", ("faithfulness", "completeness")),
    "judge_mode": ("Thorough", "thorough"),
    "alert_webhook": ("https://hooks.example.com/x", "https://hooks.example.com/x"),
    "hhem_device": ("cuda:0", "cuda:0"),
    "judge_share": ("0.2", 0.2),
    "budget_usd_per_day": ("5", 5.0),
    "budget_requests_per_minute": ("30", 30),
    "sample_rate": ("0.25", 0.25),
    "concurrency": ("4", 4),
    "queue_size": ("8", 8),
    "metric_timeout": ("1.5", 1.5),
    "exit_timeout": ("0", 0.0),
    "emitters": ("otel, Phoenix,otel,", ("otel", "phoenix")),
    "spans": ("scores", "scores"),
    "dimensions": (f"release, b,c,d,{'E' * 64}", ("release", "b", "c", "d", "E" * 64)),
    "retrieval_tools": ("Search, lookup", ("Search", "lookup")),
    "redact": ("privacy:mask", "privacy:mask"),
    "explanations": ("0", False),
    "capture_content": ("1", True),
}
"""By field: the text of its variable, and what is read of it."""


def test_every_variable_is_read():
    variables = {f"RAGSPAN_{name.upper()}": text for name, (text, _) in READ.items()}

    assert Settings.from_environment(variables) == Settings(**{name: value for name, (_, value) in READ.items()})


SHARE = "a share above 0, up to 1, such as 0.2"
NAMES = "at most five names of letters, digits and underscores, such as 'release,tenant'"
OF_GENAI = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("RAGSPAN_ENABLED", "maybe", "true or false"),
        ("RAGSPAN_JUDGE_SHARE", "20%", SHARE),
        ("RAGSPAN_JUDGE_SHARE", "0", SHARE),
        ("RAGSPAN_SAMPLE_RATE", "1.5", "a number from 0 to 1"),
        ("RAGSPAN_BUDGET_USD_PER_DAY", "0", "a number above 0"),
        ("RAGSPAN_METRIC_TIMEOUT", "0", "a number of seconds, more than 0"),
        ("RAGSPAN_EXIT_TIMEOUT", "-1", "a number of seconds, 0 or more"),
        ("RAGSPAN_DIMENSIONS", "prompt version", NAMES),
        ("RAGSPAN_DIMENSIONS", "a,b,c,d,e,f", NAMES),
        ("RAGSPAN_DIMENSIONS", "a" * 65, NAMES),
        ("RAGSPAN_UNKNOWN_CONTEXTS", "promt", "one of skip, prompt; did you mean 'prompt'?"),
        ("RAGSPAN_CAPTURE_CONTENT", "span", "true, false, spans or events; did you mean 'spans'?"),
        (OF_GENAI, "ALL", "true, false, NO_CONTENT, SPAN_ONLY, EVENT_ONLY or SPAN_AND_EVENT"),
    ],
)
def test_a_wrong_value_is_refused_with_the_variable_the_value_and_what_is_allowed(name, value, allowed):
    with pytest.raises(ConfigurationError) as refusal:
        Settings.from_environment({name: value})

    assert str(refusal.value) == f"{name} is {value!r}, but should be {allowed}"


@pytest.mark.parametrize(
    ("value", "captured"),
    [("true", True), ("SPAN_ONLY", "spans"), ("SPAN_AND_EVENT", True), ("NO_CONTENT", False), ("EVENT_ONLY", "events")],
)
def test_opentelemetrys_own_switch_for_content_is_followed(value, captured):
    assert Settings.from_environment({OF_GENAI: value}).capture_content == captured
    assert Settings.from_environment({OF_GENAI: value, "RAGSPAN_CAPTURE_CONTENT": "false"}).capture_content is False


def test_a_misspelt_variable_is_pointed_out_once(caplog, monkeypatch):
    monkeypatch.setattr(in_use, "said", set())
    with caplog.at_level(logging.WARNING, logger="ragspan"):
        for _ in range(2):
            Settings.from_environment({"RAGSPAN_JUGDE": "overlap"})

    assert caplog.messages == [
        "RAGSPAN_JUGDE is set, but ragspan knows no such variable; did you mean 'RAGSPAN_JUDGE'?"
    ]


SECRETS = {
    "RAGSPAN_JUDGE_OPTIONS": 'a JSON object, such as {"timeout": 60, "max_retries": 1}, or a list of one for each judge',
    "RAGSPAN_ALERT_WEBHOOK": "an address such as https://hooks.example.com/ragspan",
}


def test_secrets_are_not_in_the_repr():
    secret = ("judge_base_url", "judge_api_key", "judge_options", "sink", "alert_webhook")

    assert "hush" not in repr(Settings(**dict.fromkeys(secret, "hush")))


@pytest.mark.parametrize("text", ['{"api_key": "sk-secret"', "sk-secret", '"sk-secret"', '["sk-secret"]', "[]"])
def test_options_that_are_no_json_object_and_webhooks_that_are_no_address_are_refused_without_a_word_of_them(text):
    for name, allowed in SECRETS.items():
        with pytest.raises(ConfigurationError) as refusal:
            Settings.from_environment({name: text})

        assert str(refusal.value) == f"{name} should be {allowed}"


INTERPRETERS = "_interpreters" if sys.version_info >= (3, 13) else "_xxsubinterpreters"


def test_it_is_on_unless_the_environment_says_no_or_it_is_not_the_main_interpreter(caplog, monkeypatch):
    monkeypatch.setattr(in_use, "said", set())
    assert is_enabled()

    for current, is_on in ((0, True), ((1, 2), False), (None, True)):
        monkeypatch.setitem(sys.modules, INTERPRETERS, SimpleNamespace(get_current=lambda one=current: one))
        assert is_enabled() is is_on
    assert (
        "ragspan is off in a subinterpreter: Python cannot end one that has threads. With mod_wsgi, set " in caplog.text
    )
    monkeypatch.setenv("RAGSPAN_ENABLED", "false")

    assert not is_enabled()


OPTIONS = {  # of public names: `tests/docs/whole_signatures.json`
    "ragspan.config:Settings": {"judge_polls": 3, "sample_rate": 1.0, "concurrency": 16, "queue_size": 2048, "metric_timeout": 60.0, "exit_timeout": 10.0},
    "ragspan.tools.spans:SPAN_DELIVERY": {"queue_bytes": 64 * 2**20, "batch_size": 512, "linger": 0.0, "retry_window": 600.0},
    "ragspan_nats.settings:WorkerOptions": {"concurrency": 16, "ack_wait": 30.0, "max_deliveries": 5, "drain_timeout": 25.0, "export_retry_timeout": 600.0},
    "ragspan_receiver.traces:BufferLimits": {"quiet": 2.0, "deadline": 30.0, "max_bytes": 256 * 2**20, "max_traces": 100_000, "max_trace_spans": 10_000, "max_trace_bytes": 16 * 2**20},
}  # fmt: skip


@pytest.mark.parametrize(("place", "defaults"), OPTIONS.items(), ids=OPTIONS)
def test_a_number_that_nobody_sets_is_what_it_was(place, defaults):
    options = pkgutil.resolve_name(place)
    of_class = isinstance(options, type)
    found = {one.name: one.default if of_class else getattr(options, one.name) for one in dataclasses.fields(options)}

    assert {name: value for name, value in found.items() if type(value) in {int, float}} == defaults
