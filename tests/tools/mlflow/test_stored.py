"""Traces that MLflow has stored: `ragspan evaluate --from mlflow` and `ragspan labels pull mlflow`."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from source_law import SourceLaw, evaluate, pull, ragspan  # noqa: F401 - fixtures

# ruff: noqa: F811 - fixtures
LIBRARY = "A book is lent for 28 days."


@pytest.fixture
def stored_in(mlflow):
    newest = list(mlflow.recorded.values())[-1]["trace_info"]["request_time"]
    return SimpleNamespace(project="Default", empty="7", newest=newest)


class TestReading(SourceLaw):
    pass


@pytest.mark.parametrize(
    ("project", "said"), [("0", "4 rows evaluated"), ("other", "http_404 (it has no such project")]
)
def test_an_experiment_is_known_by_its_id_too(evaluate, project, said):
    assert said in evaluate(project=project).output


def own(mlflow):
    """The recorded trace whose answer a person calls correct."""
    for trace in mlflow.recorded.values():
        for one in trace["trace_info"].get("assessments", ()):
            if one["assessment_name"] == "correct" and one["feedback"]["value"] is True:
                return trace
    raise LookupError


def test_scores_go_back_to_the_answers_spans(evaluate, mlflow):
    done = evaluate("--to-trace")

    assert done.exit_code == 0, done.output
    assert "the scores of 4 answers go to mlflow" in done.stderr
    written = [one for trace in mlflow.recorded for one in mlflow.assessments[trace]]
    assert sorted(one["feedback"]["value"] for one in written) == ["fail", "pass", "pass", "pass"]
    earlier = next(one for one in own(mlflow)["trace_info"]["assessments"] if one["assessment_name"] == "faithfulness")
    assert earlier["assessment_id"] in [one["assessment_id"] for one in written], "it replaces the live score"


def test_labels_of_people_become_a_table(pull):
    done, rows = pull()

    assert [(row["response"], row["label"], len(row["contexts"])) for row in rows] == [(LIBRARY, "pass", 3)]
    assert "1 more have a label 'correct' that says neither good nor bad" in done.stderr


@pytest.mark.parametrize(
    ("value", "label"), [(False, "fail"), ("yes", "pass"), (0.4, "fail"), (0.5, "pass"), (1, "pass")]
)
def test_a_label_is_a_flag_a_word_or_a_number(pull, mlflow, value, label):
    for one in own(mlflow)["trace_info"]["assessments"]:
        one["feedback"] = {"value": value}

    assert [row["label"] for row in pull()[1]] == [label]
