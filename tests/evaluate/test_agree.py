"""What users of `ragspan agree` see, and how labels are read."""

from __future__ import annotations

import csv
import json
import random
from functools import partial

import pytest

from ragspan.evaluate import evaluate
from ragspan.evaluate.label_agreement import agreement

CONTEXT = "The tower is 330 metres high. It was built in 1889."
RIGHT = ["The tower is 330 metres high.", "It was built in 1889."]
WRONG = ["Llamas graze on the moon every Tuesday.", "Nobody sells umbrellas in Reykjavik."]


@pytest.fixture
def table(tmp_path):
    """Writes 60 responses, half of them supported; `label_of` says what people say of a row."""

    def write(label_of, name="table.csv"):
        path = tmp_path / name
        with path.open("w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(["question", "contexts", "answer", "label"])
            for number in range(60):
                is_right = number % 2 == 0
                text = (RIGHT if is_right else WRONG)[number // 2 % 2]
                rows.writerow(["What is known?", json.dumps([CONTEXT]), text, label_of(number, is_right=is_right)])
        return path

    return write


@pytest.fixture(autouse=True)
def in_this_process(monkeypatch):
    monkeypatch.setenv("RAGSPAN_JUDGING", "thread")


@pytest.fixture
def run(command):
    return partial(command, "agree")


def people(_, *, is_right):
    return "yes" if is_right else "no"


def test_a_judge_that_agrees_is_said_to(run, table):
    path = table(people)
    with path.open("a") as rows:
        rows.write("What is known?,[1],no text in its contexts,yes\n")
    done = run(path, "--metrics", "context_adherence")

    assert done.exit_code == 0, done.output
    assert max(map(len, done.stdout.partition("labels")[2].partition("In brackets")[0].splitlines())) <= 80


def test_a_few_labels_that_all_agree_do_not_make_a_judge_certain(table):
    few = table(lambda number, is_right: people(number, is_right=is_right) if number < 5 else "")
    evaluation = evaluate(few, "context_adherence", label_column="label")
    (figures,) = agreement(evaluation).metrics

    assert "The failing response" not in str(evaluation)

    for figure in (figures.auroc, figures.balanced_accuracy):
        assert (figure.value, figure.upper) == (1.0, 1.0)
        assert figure.lower < 0.6
    assert figures.missing_labels > 50


def test_a_metric_without_verdicts_is_said_to_lack_them_and_not_labels(run, table):
    done = run(table(people), "--metrics", "context_utilization")

    assert "and a metric by which responses pass or fail" in done.stdout


def test_rows_without_a_label_count_for_the_share_of_failures(table):
    draw = random.Random(1)
    chosen = set(draw.sample(range(60), 30))
    path = table(lambda number, is_right: people(number, is_right=is_right) if number in chosen else "")
    found = agreement(evaluate(path, "context_adherence", label_column="label"))

    assert found.metrics[0].labels == 30
    assert found.failures is not None
    assert found.failures.labels == 30
    assert found.failures.lower < 0.5 < found.failures.upper, "whatever share of the labelled rows fails"
    assert found.failures.by_metric == 0.25


@pytest.mark.parametrize(
    ("cell", "options", "message"),
    [
        ("perhaps", [], "has a label that is one of 0, 1, bad, correct,"),
        ("", [], "has a label that is one of 0, 1, bad, correct,"),
        ("yes", ["--label-column", "lable"], "there is no column 'lable' for the label"),
    ],
)
def test_a_table_without_labels_that_can_be_read_is_an_error(run, table, cell, options, message):
    done = run(table(lambda number, is_right: cell), *options)

    assert (done.exit_code, message in done.output) == (2, True)


@pytest.mark.parametrize(("bad", "rest"), [(10, None), (11, "... and 1 more row"), (12, "... and 2 more rows")])
def test_ten_rows_that_are_skipped_are_named_and_the_rest_counted(run, table, monkeypatch, bad, rest):
    monkeypatch.setenv("RAGSPAN_METRICS", "completeness")  # no other metric is a measure
    done = run(table(lambda number, is_right: "perhaps" if number < bad else people(number, is_right=is_right)))

    assert done.stderr.count("skipped row ") == 10
    assert next((line for line in done.stderr.splitlines() if line.startswith("...")), None) == rest


def test_evaluate_tells_how_many_fail_by_the_labels_standard(command, table, tmp_path):
    summary = tmp_path / "summary.json"
    options = ("--metrics", "context_adherence,context_utilization", "--label-column", "label", "--json", summary)
    done = command("evaluate", table(people), *options)

    assert done.exit_code == 0, done.output
    told = json.loads(summary.read_text())["agreement"]
    assert (told["label"], told["failures"]["value"]) == ("label", 0.5)
    assert [(one["metric"], one["balanced_accuracy"]["value"]) for one in told["metrics"]] == [
        ("context_adherence", 1.0)
    ]
