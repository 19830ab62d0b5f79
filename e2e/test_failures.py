"""Failing answers to a data set of a real tool and back: nothing is lost, and nothing comes twice."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

RAGSPAN = Path(sys.executable).with_name("ragspan")


def ragspan(*arguments, **environment):
    command = [str(one) for one in (RAGSPAN, *arguments)]
    told = os.environ | {"RAGSPAN_JUDGING": "thread"} | environment
    return subprocess.run(command, env=told, capture_output=True, check=False, text=True, timeout=120)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("failures")
    rows = [
        {
            "question": f"How long does Beta {number} take?",
            "contexts": [f"Beta {number} settles in {number + 3} days."],
            "answer": f"Beta {number} settles in {number + (5 if number % 10 == 0 else 3)} days.",
        }
        for number in range(200)
    ]
    (folder / "table.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert ragspan("evaluate", folder / "table.jsonl", "-o", folder / "results.jsonl").returncode == 0
    return folder / "results.jsonl"


@pytest.mark.parametrize("tool", ["phoenix", "mlflow"])
def test_failing_answers_go_to_a_data_set_once_and_come_back(request, results, tool, tmp_path):
    url = request.getfixturevalue(tool).url
    at = {"phoenix": {"PHOENIX_ENDPOINT": url}, "mlflow": {"MLFLOW_TRACKING_URI": url}}[tool]
    first = ragspan("failures", results, "--to", f"{tool}:broken", **at)
    second = ragspan("failures", results, "--to", f"{tool}:broken", **at)
    back = ragspan("evaluate", f"{tool}:broken", "-o", tmp_path / "back.jsonl", **at)

    assert first.stdout == f"20 failing answers are in {tool}:broken\n", first.stderr
    assert second.stdout == f"20 failing answers are in {tool}:broken, 20 of which were there already\n", second.stderr
    assert back.returncode == 0, back.stderr
    rows = [json.loads(line) for line in (tmp_path / "back.jsonl").read_text().splitlines()[1:]]
    before = [json.loads(line) for line in results.read_text().splitlines()[1:]]
    assert sorted(row["response"] for row in rows) == sorted(row["response"] for row in before[::10])


@pytest.mark.parametrize("tool", ["phoenix", "mlflow"])
def test_a_data_set_that_is_not_there_is_a_sentence(request, tool):
    url = request.getfixturevalue(tool).url
    told = ragspan("evaluate", f"{tool}:nowhere", PHOENIX_ENDPOINT=url, MLFLOW_TRACKING_URI=url)

    assert (told.returncode, f"{tool} has no data set 'nowhere'" in told.stderr) == (2, True)
