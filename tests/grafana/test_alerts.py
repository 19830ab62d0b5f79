"""The alert rules are well formed, and fire when they should and only then."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
RULES = ROOT / "docs" / "grafana" / "alerts.yaml"
CASES = Path(__file__).parent / "alerts_test.yaml"
WEEK = Path(__file__).parent / "alerts_after_a_week_test.yaml"
RATES = Path(__file__).parent / "alerts_of_rates_test.yaml"


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def alerts():
    groups = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    return [rule for group in groups for rule in group["rules"] if "alert" in rule]


def test_prometheus_takes_the_rules(promtool):
    assert "rules found" in run(promtool, "check", "rules", "--lint-fatal", RULES)


@pytest.mark.slow
def test_the_rules_do_what_their_cases_say(promtool):
    assert "SUCCESS" in run(promtool, "test", "rules", CASES)


def test_the_rules_compare_the_true_rates_of_two_weeks(promtool):
    assert "SUCCESS" in run(promtool, "test", "rules", RATES)


@pytest.mark.slow
def test_the_rules_compare_with_the_week_before(promtool):
    assert "SUCCESS" in run(promtool, "test", "rules", WEEK)


def test_every_alert_has_a_case_in_which_it_fires():
    cases = [
        case for file in (CASES, WEEK, RATES) for case in yaml.safe_load(file.read_text(encoding="utf-8"))["tests"]
    ]
    fired = {case["alertname"] for test in cases for case in test["alert_rule_test"] if case["exp_alerts"]}

    assert fired == {alert["alert"] for alert in alerts()}


@pytest.mark.parametrize("alert", alerts(), ids=lambda alert: alert["alert"])
def test_an_alert_says_where_how_bad_and_what_it_means(alert):
    assert alert["labels"]["severity"] in {"warning", "critical"}
    assert "{{ $labels.job }}" in alert["annotations"]["summary"]
    assert "{{ $value" in alert["annotations"]["description"] or alert["alert"] == "RagspanJudgeUnavailable"
