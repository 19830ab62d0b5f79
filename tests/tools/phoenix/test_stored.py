"""Traces that Phoenix has stored: `ragspan evaluate --from phoenix` and `ragspan labels pull phoenix`."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
from source_law import SourceLaw, evaluate, pull, ragspan  # noqa: F401 - fixtures

# ruff: noqa: F811 - fixtures
LIBRARY = "A book is lent for 28 days."


@pytest.fixture
def stored_in(phoenix):
    newest = phoenix.recorded["traces"][-1]["start_time"]
    return SimpleNamespace(project="default", empty="empty", newest=newest)


class TestReading(SourceLaw):
    pass


def span_with(phoenix, **attributes):
    return next(span for span in phoenix.recorded["spans"] if attributes.items() <= span["attributes"].items())


def test_an_answer_of_ragspan_keeps_its_record_id(evaluate, phoenix, tmp_path):
    evaluate("-o", tmp_path / "scores.jsonl")

    ids = {json.loads(line)["record_id"] for line in (tmp_path / "scores.jsonl").read_text().splitlines()[1:]}
    own = [span["attributes"].get("ragspan.record_id") for span in phoenix.recorded["spans"]]
    assert set(filter(None, own)) < ids


def test_contexts_that_spans_hold_in_part_are_unknown(evaluate, phoenix):
    answer = span_with(phoenix, **{"output.value": LIBRARY, "ragspan.contexts.count": 3})
    answer["attributes"]["ragspan.contexts.count"] = 40

    done = evaluate()

    assert "contexts_unknown 1" in done.stdout, done.stdout


def test_scores_go_back_to_the_answers_spans(evaluate, phoenix):
    done = evaluate("--to-trace")

    assert done.exit_code == 0, done.output
    assert "the scores of 4 answers go to phoenix" in done.stderr
    answer = span_with(phoenix, **{"output.value": LIBRARY, "ragspan.contexts.count": 3})
    (row,) = [row for row in phoenix.rows if row["span_id"] == answer["context"]["span_id"]]
    assert (row["name"], row["result"]["score"]) == ("faithfulness", 1.0)
    assert row["identifier"] == f"ragspan:{answer['attributes']['ragspan.record_id']}", "it replaces the live score"


def test_what_is_written_before_an_outage_is_kept(evaluate, phoenix, tmp_path):
    phoenix.script += [None, None, (503, "")]
    scores = tmp_path / "scores.jsonl"

    stopped = evaluate("-o", scores)
    assert stopped.exit_code == 2
    assert "http_503" in stopped.stderr

    assert evaluate("-o", scores, "--resume").exit_code == 0
    assert len(scores.read_text().splitlines()) == 1 + 4  # the first says what was evaluated


def test_labels_of_people_become_a_table(pull, ragspan, tmp_path):
    _, rows = pull()

    assert [row["label"] for row in rows] == ["pass", "fail"]
    assert rows[0]["response"] == LIBRARY
    assert len(rows[0]["contexts"]) == 3
    assert (len(rows[0]["trace_id"]), len(rows[0]["span_id"])) == (32, 16)
    agreed = ragspan("agree", tmp_path / "labels.jsonl", "--metrics", "faithfulness")
    assert "2 of 2 rows have a label" in agreed.stdout, agreed.output
