"""The rules for the true rate of failures say what `estimate_rate` says of the same counts."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import yaml

from ragspan.evaluate.summaries import Stratum, estimate_rate

RULES = Path(__file__).parents[2] / "docs" / "grafana" / "alerts.yaml"
RATES = ("estimate", "lower", "upper", "answers", "labels")
CASES = {
    "usual": ((1580, 1580, 790), (8420, 421, 25)),
    "some_doubtful_without_a_label": ((1580, 1500, 700), (8420, 400, 25)),
    "no_failures": ((160, 160, 0), (840, 42, 0)),
    "no_failures_among_the_rest": ((160, 160, 30), (840, 42, 0)),
    "many": ((158_000, 158_000, 40_000), (842_000, 42_100, 1_200)),
    "all_fail": ((160, 160, 160), (840, 42, 42)),
    "all_asked": ((100, 100, 30), (60, 60, 5)),
    "nothing_doubtful": ((0, 0, 0), (5000, 250, 20)),
    "nothing_but_doubtful": ((300, 300, 100), (0, 0, 0)),
    "least_labels": ((100, 100, 30), (400, 20, 1)),
    "few_labels": ((100, 100, 30), (400, 19, 1)),
    "no_label_of_the_rest": ((100, 100, 30), (400, 0, 0)),
    "no_label_of_the_doubtful": ((100, 0, 0), (400, 40, 4)),
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
    """What a process tells of such answers; what never happened has no series."""
    for part, (answers, labels, failing) in zip(("doubtful", "rest"), numbers, strict=True):
        counts = {"fail": failing, "pass": labels - failing, "unknown": answers - labels}
        for label, count in counts.items():
            about = {"job": "shop", "gen_ai_evaluation_name": name, "ragspan_part": part}
            if count:
                yield series("ragspan_labels_total", path, count, **about, gen_ai_evaluation_score_label=label)


def expected_of(name, numbers):
    """Queries with the samples that they are to bring."""
    strata = [Stratum(answers=answers, labels=labels, failing=failing) for answers, labels, failing in numbers]
    estimate = estimate_rate(strata)
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
