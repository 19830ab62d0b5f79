"""Failing answers as a table: collected once, labelled, and taken back. `e2e/test_failures.py` has them in real tools."""

from __future__ import annotations

import json
import shutil
import sys

import pytest
from servers.http import LocalHttp

from ragspan import RagRecord
from ragspan.evaluate import evaluate, evaluate_command
from ragspan.evaluate.sources import StoredAnswer, StoredScore
from ragspan.judges import OverlapJudge
from ragspan.metrics import Faithfulness


@pytest.fixture(scope="module")
def rows_file(tmp_path_factory):
    output = tmp_path_factory.mktemp("evaluated") / "results.jsonl"
    rows = [
        {
            "id": f"a{number}",
            "question": f"How long does Beta {number} take?",
            "contexts": [f"Beta {number} settles in {number + 3} days."],
            "answer": f"Beta {number} settles in {number + (9 if number % 10 == 0 else 3)} days.",
        }
        for number in range(60)
    ]
    evaluate(rows, [Faithfulness(OverlapJudge())], output=output)
    return output


@pytest.fixture
def results(rows_file, tmp_path):
    return shutil.copy(rows_file, tmp_path / "results.jsonl")


def lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_failing_answers_are_collected_once_and_keep_the_labels_that_people_give(command, results, tmp_path):
    output = tmp_path / "failures.jsonl"
    command("failures", results, "-o", output)
    found = lines(output)
    labelled = [row | {"label": "no"} for row in found]
    output.write_text("".join(json.dumps(row) + "\n" for row in labelled), encoding="utf-8")
    second = command("failures", results, "-o", output)

    assert second.stdout == f"6 failing answers are in {output}, 6 of which were there already\n"
    assert lines(output) == labelled
    assert [row["record_id"] for row in found] == ["a0", "a10", "a20", "a30", "a40", "a50"]
    assert found[0].pop("finding").startswith("1 of 1 claims unsupported: Beta 0 settles in 9 days. (")
    assert found[0] == {
        "key": "d11ad6dbf9d4fe26",  # the same for the same answer in every version: data sets in tools have it
        "record_id": "a0",
        "question": "How long does Beta 0 take?",
        "contexts": ["Beta 0 settles in 3 days."],
        "response": "Beta 0 settles in 9 days.",
        **dict.fromkeys(("trace_id", "span_id", "label", "cause")),
        "metric": "faithfulness",
        "fails": {"faithfulness": 0.0},
    }
    assert command("agree", output, "--metrics", "faithfulness").stdout.splitlines()[1] == "6 of 6 rows have a label"
    assert command("evaluate", output, "--metrics", "faithfulness").exit_code == 0


def test_answers_that_failed_by_the_scores_that_a_tool_has_are_collected_with_the_worst(command, tmp_path, monkeypatch):
    said = (("faithfulness", "fail", 0.4), ("completeness", "fail", None), ("context_adherence", "pass", 0.9))
    scores = [StoredScore(metric=name, label=label, value=value, finding=f"of {name}") for name, label, value in said]
    record = RagRecord(question="q", contexts=["c"], response="r", record_id="r-1", started_ns=1)
    answers = [StoredAnswer(record=record, scores=scores), StoredAnswer(record=record, scores=scores[2:])]
    monkeypatch.setattr(evaluate_command, "stored_answers", lambda *_, **__: iter(answers))

    done = command("failures", "--from", "phoenix", "--project", "p", "-o", tmp_path / "failures.jsonl")

    assert done.stdout == f"1 failing answer is in {tmp_path / 'failures.jsonl'}\n"
    [row] = lines(tmp_path / "failures.jsonl")
    assert {name: row[name] for name in ("record_id", "metric", "finding", "fails", "label", "cause")} == {
        "record_id": "r-1",
        "metric": "completeness",
        "finding": "of completeness",
        "fails": {"faithfulness": 0.4, "completeness": None},
        "label": None,
        "cause": None,
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give a FILE, or a tool after --from"),
        (["r.jsonl"], "say where they go"),
        (["nothere.jsonl", "-o", "f.jsonl"], "nothere.jsonl cannot be read: No such file"),
        (["r.jsonl", "-o", "./r.jsonl"], "is the same file as the file of rows"),
        (["r.jsonl", "-o", "other.jsonl"], "was not written by ragspan failures"),
        (["r.jsonl", "-o", "folder.jsonl"], "folder.jsonl cannot be read: Is a directory"),
        (["other.jsonl", "-o", "f.jsonl"], "is not a file of rows that this version of ragspan wrote"),
    ],
)
def test_wrong_usage_is_a_sentence(command, results, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    results.rename("r.jsonl")
    (tmp_path / "folder.jsonl").mkdir()
    (tmp_path / "other.jsonl").write_text('{"a": 1}\n')
    done = command("failures", *arguments)

    assert (done.exit_code, message in done.stderr) == (2, True), done.stderr
    assert (tmp_path / "other.jsonl").read_text() == '{"a": 1}\n'
    assert not (tmp_path / "f.jsonl").exists()


def test_without_the_package_the_extra_is_named(command, results, monkeypatch):
    monkeypatch.setitem(sys.modules, "requests", None)

    done = command("failures", results, "--to", "phoenix:mine")

    assert (done.exit_code, "pip install 'ragspan[phoenix]'" in done.stderr) == (2, True), done.stderr


@pytest.mark.parametrize("tool", ["phoenix", "mlflow"])
@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (None, "no server listens there: connection refused"),
        (401, "http_401 (it wants other credentials)"),
        (403, "http_403"),
        (404, "http_404 (it has no such project)"),
    ],
)
def test_a_tool_that_is_away_or_has_another_key_is_a_sentence(command, results, monkeypatch, tool, status, reason):
    with LocalHttp(lambda _: (status, {}, b""), listening=status is not None) as server:
        monkeypatch.setenv("PHOENIX_BASE_URL", server.url)
        monkeypatch.setenv("MLFLOW_TRACKING_URI", server.url)
        for words in (("failures", results, "--to", f"{tool}:mine"), ("evaluate", f"{tool}:mine")):
            done = command(*words)
            assert (done.exit_code, done.stdout) == (2, "")
            assert f"{tool} cannot be read: {reason}, at " in done.stderr
            assert f" {server.url}/" in done.stderr
