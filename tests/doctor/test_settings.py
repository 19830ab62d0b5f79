"""What the doctor says of settings and of what is installed."""

import importlib.metadata
import json
import re
from pathlib import Path

import pytest

from ragspan.doctor.examination import secrets_hider

TOLD = json.loads(Path(__file__).with_name("settings.json").read_text("utf-8"))
"""Variables, and what the doctor says of them, or the code of it."""


def test_what_is_set_is_shown_but_no_secret(examined):
    findings = examined(
        OTEL_SDK_DISABLED="true",
        RAGSPAN_JUDGE="openai:m",
        RAGSPAN_METRICS="faithfulness,completeness",
        RAGSPAN_JUDGE_API_KEY="very-secret",
        RAGSPAN_JUDGE_BASE_URL="http://user:hidden@localhost:1/v1?k=hush",
    )

    assert not [secret for secret in ("very-secret", "hidden", "hush") if secret in repr(findings)]


@pytest.mark.parametrize(("name", "value", "words"), TOLD["wrong values"])
def test_a_wrong_value_is_a_misuse_is_listed_once_and_nothing_is_tried(examined, otlp_listener, name, value, words):
    findings = examined(OTEL_EXPORTER_OTLP_ENDPOINT=otlp_listener.url, **{name: value})

    assert (findings[0].state, findings[0].code) == ("failed", "wrong_setting")
    assert words in findings[0].found
    assert findings.codes("skipped") == ["not_examined"]
    assert otlp_listener.requests == []


@pytest.mark.parametrize(("variables", "code"), TOLD["switches"])
def test_what_switches_scores_off_fails_and_nothing_is_asked(examined, variables, code):
    findings = examined(**variables)

    assert code in findings.of("settings").codes("failed")
    assert findings.of("record").states() == ["skipped"]


@pytest.mark.parametrize(("variables", "code"), TOLD["warnings"])
def test_what_may_keep_scores_from_being_seen_is_a_warning(examined, variables, code):
    assert examined(OTEL_SDK_DISABLED="true", **variables).codes("warning") == [code]


def test_an_address_of_alerts_where_nobody_listens_is_a_warning(examined, refused_port, silent_port):
    findings = {
        port: examined(RAGSPAN_ALERT_WEBHOOK=f"http://127.0.0.1:{port}/t0ps3cret", OTEL_SDK_DISABLED="true")
        for port in (refused_port, silent_port)
    }

    assert findings[refused_port].codes("warning") == ["webhook_unreachable"]
    assert "webhook_unreachable" not in findings[silent_port].codes()


@pytest.mark.parametrize(("name", "value", "words"), TOLD["secrets"])
def test_what_the_environment_keeps_secret_is_taken_out_of_words(set_variables, name, value, words):
    set_variables(**{name: value})

    assert "t0ps3cret" not in secrets_hider()(words)


INTEGRATED = "python V, ragspan V, ragspan-langchain V, ragspan-llama-index V, langchain-core V, llama-index-core V"
ALONE = "; no integration with a framework is installed: only ragspan.capture and your own records are scored"
INSTALL = "pip install 'ragspan[langchain]' or 'ragspan[llama-index]'"


@pytest.mark.parametrize(
    ("points", "told"),
    [
        (importlib.metadata.entry_points, (f"{INTEGRATED}, opentelemetry-sdk V, openai V", "ok", None)),
        (lambda **_: (), (f"python V, ragspan V, opentelemetry-sdk V, openai V{ALONE}", "warning", INSTALL)),
    ],
    ids=["with integrations", "alone"],
)
def test_the_versions_of_all_that_takes_part_are_told(examined, monkeypatch, points, told):
    monkeypatch.setattr(importlib.metadata, "entry_points", points)
    settings = examined(OTEL_SDK_DISABLED="true").of("settings")
    [found] = [one for one in settings if one.code in {"versions", "no_integration"}]

    assert (re.sub(r" \d[\w.]*", " V", found.found), found.state, found.advice) == told


def test_words_are_bounded_and_have_no_control_characters():
    assert secrets_hider()("a\x00\x9b" + "b" * 700) == f"a  {'b' * 596}…"


def test_an_ordinary_name_of_a_user_and_a_short_value_are_no_secrets_beside_a_password(set_variables):
    set_variables(RAGSPAN_SINK="nats://application:t0ps3cret@broker:4222", OPENAI_KEY="12345", PHOENIX_API_KEY="sixsix")

    assert secrets_hider()("_INBOX_application 12345 sixsix") == "_INBOX_application 12345 [secret]"
