"""The rules for the true rate of failures say what `estimate_rate` says of the same counts."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import yaml

from ragspan.metrics.rates import LabelCounts, estimate_rate

RULES = Path(__file__).parents[2] / "docs" / "grafana" / "alerts.yaml"
RATES = ("estimate", "lower", "upper", "by_metric", "labels", "worth")
CASES = {
    "usual": (18, 12, 6, 64, 1300, 3700),
    "no_failures": (0, 0, 0, 50, 0, 4000),
    "no_failures_by_label": (0, 7, 0, 93, 300, 3000),
    "perfect_judge": (40, 0, 0, 60, 800, 1200),
    "perfect_judge_of_many": (400, 0, 0, 600, 40_000, 60_000),
    "coin_judge": (25, 25, 25, 25, 1000, 1000),
    "reversed_judge": (5, 40, 45, 10, 500, 500),
    "all_fail": (30, 0, 0, 0, 500, 0),
    "all_labelled": (10, 5, 3, 32, 0, 0),
    "least_labels": (4, 3, 2, 11, 200, 300),
    "few_labels": (4, 3, 2, 10, 200, 300),
    "few_answers": (8, 4, 2, 16, 3, 9),
}
PATHS = {
    "seen from the start": "0x20 {count}x2100",
    "began with its events": "_x20 {count}x2100",
    "with a restart": "0x20 {before}x1000 {after}x1100",
}


def series(metric, path, count, **labels):
    before = count // 2 + 1  # more than what comes after, or nobody could tell the restart
    pairs = ", ".join(f'{name}="{value}"' for name, value in labels.items())
    return {
        "series": f"{metric}{{{pairs}}}",
        "values": PATHS[path].format(count=count, before=before, after=count - before),
    }


def input_of(name, numbers, path):
    """What a process tells of such counts; what never happened has no series. Two judges share the metric."""
    both, metric_only, label_only, neither, failing, passing = numbers
    about = {"job": "shop", "gen_ai_evaluation_name": name}
    labelled = {
        ("fail", "fail"): both,
        ("fail", "pass"): metric_only,
        ("pass", "fail"): label_only,
        ("pass", "pass"): neither,
    }
    for (label, reference), count in labelled.items():
        labels = about | {"gen_ai_evaluation_score_label": label, "ragspan_reference_label": reference}
        if count:
            yield series("ragspan_labels_total", path, count, **labels)
    scored = {"fail": both + metric_only + failing, "pass": label_only + neither + passing}
    for label, count in scored.items():
        for judge, part in (("overlap", count // 3), ("openai:m", count - count // 3)):
            labels = about | {"gen_ai_evaluation_score_label": label, "ragspan_judge": judge}
            if part:
                yield series("ragspan_score_count", path, part, **labels)


def expected_of(name, numbers):
    """Queries with the samples that they are to bring."""
    estimate = estimate_rate(LabelCounts(**dict(zip(LabelCounts.__slots__, numbers, strict=True))))
    for rate in RATES:
        record = f'ragspan:rate:{rate}{{gen_ai_evaluation_name="{name}"}}'
        if estimate is None:
            if rate in ("estimate", "lower", "upper"):
                yield {"expr": record, "eval_time": "7d", "exp_samples": []}
            continue
        wanted = getattr(estimate, "value" if rate == "estimate" else rate)
        labels = f'{{job="shop", gen_ai_evaluation_name="{name}"}}'
        near = f"abs({record} - {wanted!r}) <= bool {1e-5 * max(wanted, 1):f}"
        yield {"expr": near, "eval_time": "7d", "exp_samples": [{"labels": labels, "value": 1}]}


@pytest.mark.parametrize("path", PATHS)
def test_the_rules_say_what_the_formula_says(promtool, tmp_path, path):
    test = {
        "interval": "5m",
        "input_series": [one for name, numbers in CASES.items() for one in input_of(name, numbers, path)],
        "promql_expr_test": [one for name, numbers in CASES.items() for one in expected_of(name, numbers)],
    }
    file = {"rule_files": [str(RULES)], "evaluation_interval": "7d", "tests": [test]}
    (tmp_path / "rates_test.yaml").write_text(yaml.safe_dump(file), encoding="utf-8")

    command = [promtool, "test", "rules", str(tmp_path / "rates_test.yaml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
