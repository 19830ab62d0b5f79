"""Scores of a table by release, tenant and the like."""

from __future__ import annotations

import json

import pytest

from ragspan.evaluate import evaluate

CONTEXTS = ["The tower is 330 metres high."]
RIGHT, WRONG = "The tower is 330 metres high.", "Llamas graze on the moon every Tuesday."


@pytest.fixture(autouse=True)
def releases(monkeypatch):
    monkeypatch.setenv("RAGSPAN_DIMENSIONS", "release")
    monkeypatch.setenv("RAGSPAN_JUDGING", "thread")


def row(response, **more):
    return {"question": "How high is it?", "contexts": CONTEXTS, "answer": response, **more}


def test_each_value_has_figures_of_its_own():
    rows = [row(RIGHT, release="1.0"), row(WRONG, release="1.1"), row(RIGHT, release="1.0"), row(RIGHT)]
    found = evaluate(rows, "faithfulness").by_dimension["release"]

    assert {
        value: (round(one["faithfulness"].mean, 1), one["faithfulness"].scored) for value, one in found.items()
    } == {
        "1.0": (1.0, 2),
        "1.1": (0.0, 1),
    }, "a row without a release is in neither"


def test_the_summary_has_them(command, write_jsonl, tmp_path):
    table = write_jsonl([row(RIGHT, release="1.0"), row(WRONG, release="<b>1.1</b>")])
    summary = tmp_path / "summary.json"
    done = command("evaluate", table, "--metrics", "faithfulness", "--json", summary)

    assert done.exit_code == 0, done.output
    by_release = json.loads(summary.read_text())["by_dimension"]["release"]
    assert {value: metrics["faithfulness"]["passed"] for value, metrics in by_release.items()} == {
        "1.0": 1,
        "<b>1.1</b>": 0,
    }
