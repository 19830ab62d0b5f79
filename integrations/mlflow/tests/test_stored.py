"""Traces that MLflow has stored: `ragspan evaluate --from mlflow` and `ragspan labels pull mlflow`."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from ragspan.cli import app

LIBRARY = "A book is lent for 28 days."


@pytest.fixture
def ragspan(mlflow, monkeypatch):
    """Runs the command for this MLflow."""
    monkeypatch.setenv("MLFLOW_TRACKING_URI", mlflow.url)
    monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", "a-token")
    monkeypatch.setenv("RAGSPAN_JUDGING", "thread")
    return lambda *arguments: CliRunner().invoke(app, [str(one) for one in arguments])


@pytest.fixture
def evaluate(ragspan):
    def run(*arguments, project="Default"):
        return ragspan("evaluate", "--from", "mlflow", "--project", project, "--metrics", "faithfulness", *arguments)

    return run


@pytest.fixture
def pull(ragspan, tmp_path):
    def run(name="correct"):
        output = tmp_path / "labels.jsonl"
        done = ragspan("labels", "pull", "mlflow", "--project", "Default", "--name", name, "-o", output)
        return done, [json.loads(line) for line in output.read_text().splitlines()]

    return run


def own(mlflow):
    """The recorded trace whose answer a person calls correct."""
    for trace in mlflow.recorded.values():
        for one in trace["trace_info"].get("assessments", ()):
            if one["assessment_name"] == "correct" and one["feedback"]["value"] is True:
                return trace
    raise LookupError


@pytest.mark.parametrize("project", ["Default", "0"])
def test_stored_answers_are_scored_over_all_pages(evaluate, mlflow, tmp_path, project):
    done = evaluate("-o", tmp_path / "scores.jsonl", project=project)

    assert done.exit_code == 0, done.output
    scores = [json.loads(line) for line in (tmp_path / "scores.jsonl").read_text().splitlines()]
    assert sorted(row["score"] for row in scores) == [0.0, 1.0, 1.0, 1.0]
    assert {request.headers["authorization"] for request in mlflow.requests} == {"Bearer a-token"}


def test_scores_go_back_to_the_answers_spans(evaluate, mlflow):
    done = evaluate("--to-trace")

    assert done.exit_code == 0, done.output
    assert "the scores of 4 answers go to mlflow" in done.stderr
    written = [one for trace in mlflow.recorded for one in mlflow.assessments[trace]]
    assert sorted(one["feedback"]["value"] for one in written) == [0.0, 1.0, 1.0, 1.0]
    earlier = next(one for one in own(mlflow)["trace_info"]["assessments"] if one["assessment_name"] == "faithfulness")
    assert earlier["assessment_id"] in [one["assessment_id"] for one in written], "it replaces the live score"


def test_older_traces_are_left_out(evaluate, mlflow):
    newest = list(mlflow.recorded.values())[-1]["trace_info"]["request_time"]

    assert "1 row evaluated" in evaluate("--since", newest).stdout


def test_an_experiment_without_traces_has_no_rows(evaluate):
    done = evaluate(project="7")

    assert done.exit_code == 0, done.output
    assert "no rows" in done.stderr


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        ((401, "{}"), "http_401 (it wants other credentials)"),
        ((403, "Permission denied"), "http_403 (it does not let us see that)"),
        ((503, ""), "http_503"),
        ((200, '{"experiment": {'), "no_json"),
        ((200, "{}"), "not as expected (KeyError)"),
    ],
)
def test_what_cannot_be_read_is_said_without_the_token(evaluate, mlflow, reply, told):
    mlflow.script.append(reply)

    done = evaluate()

    assert done.exit_code == 2
    assert "mlflow cannot be read: " in done.stderr
    assert told in done.stderr
    assert "a-token" not in done.output


def test_an_experiment_that_is_not_there_is_said(evaluate):
    assert "http_404 (it has no such project" in evaluate(project="other").stderr


def test_labels_of_people_become_a_table(pull):
    done, rows = pull()

    assert done.exit_code == 0, done.output
    assert [(row["response"], row["label"], len(row["contexts"])) for row in rows] == [(LIBRARY, "pass", 3)]
    assert "1 more have a label 'correct' that says neither good nor bad" in done.stderr


def test_what_judges_wrote_is_no_label(pull):
    assert pull("faithfulness")[1] == []


@pytest.mark.parametrize(
    ("value", "label"), [(False, "fail"), ("yes", "pass"), (0.4, "fail"), (0.5, "pass"), (1, "pass")]
)
def test_a_label_is_a_flag_a_word_or_a_number(pull, mlflow, value, label):
    for one in own(mlflow)["trace_info"]["assessments"]:
        one["feedback"] = {"value": value}

    assert [row["label"] for row in pull()[1]] == [label]
