"""Traces that Phoenix has stored: `ragspan evaluate --from phoenix` and `ragspan labels pull phoenix`."""

from __future__ import annotations

import json
import sys

import pytest
from typer.testing import CliRunner

from ragspan.cli import app

LIBRARY = "A book is lent for 28 days."


@pytest.fixture
def ragspan(phoenix, monkeypatch):
    """Runs the command for this Phoenix."""
    monkeypatch.setenv("PHOENIX_BASE_URL", phoenix.url)
    monkeypatch.setenv("PHOENIX_API_KEY", "a-key")
    monkeypatch.setenv("RAGSPAN_JUDGING", "thread")
    return lambda *arguments: CliRunner().invoke(app, [str(one) for one in arguments])


@pytest.fixture
def evaluate(ragspan):
    def run(*arguments, project="default"):
        return ragspan("evaluate", "--from", "phoenix", "--project", project, "--metrics", "faithfulness", *arguments)

    return run


@pytest.fixture
def pull(ragspan, tmp_path):
    def run(*arguments, name="correct"):
        output = tmp_path / "labels.jsonl"
        done = ragspan("labels", "pull", "phoenix", "--project", "default", "--name", name, "-o", output, *arguments)
        rows = [json.loads(line) for line in output.read_text().splitlines()] if output.exists() else []
        return done, rows

    return run


def span_with(phoenix, **attributes):
    return next(span for span in phoenix.recorded["spans"] if attributes.items() <= span["attributes"].items())


def test_stored_answers_are_scored_over_all_pages(evaluate, phoenix, tmp_path):
    done = evaluate("-o", tmp_path / "scores.jsonl")

    assert done.exit_code == 0, done.output
    scores = {row["record_id"]: row for row in map(json.loads, (tmp_path / "scores.jsonl").read_text().splitlines())}
    assert sorted(row["score"] for row in scores.values()) == [0.0, 1.0, 1.0, 1.0]
    assert {request.headers["authorization"] for request in phoenix.requests} == {"Bearer a-key"}


def test_an_answer_of_ragspan_keeps_its_record_id(evaluate, phoenix, tmp_path):
    evaluate("-o", tmp_path / "scores.jsonl")

    ids = {json.loads(line)["record_id"] for line in (tmp_path / "scores.jsonl").read_text().splitlines()}
    assert {
        span["attributes"]["ragspan.record_id"]
        for span in phoenix.recorded["spans"]
        if "ragspan.record_id" in span["attributes"]
    } < ids


def test_contexts_that_spans_hold_in_part_are_unknown(evaluate, phoenix):
    answer = span_with(phoenix, **{"output.value": LIBRARY, "ragspan.contexts.count": 3})
    answer["attributes"]["ragspan.contexts.count"] = 40

    done = evaluate()

    assert "contexts_unknown 1" in done.stdout, done.stdout


def test_where_spans_hold_ids_and_no_texts_contexts_are_unknown(evaluate, phoenix):
    """As ragspan writes them where documents are hidden; other instrumentors repeat texts in other spans."""
    for span in phoenix.recorded["spans"]:
        for key in [key for key in span["attributes"] if key.endswith("document.content")]:
            del span["attributes"][key]

    assert "2 skipped (contexts_unknown 2)" in evaluate().stdout


def test_scores_go_back_to_the_answers_spans(evaluate, phoenix):
    done = evaluate("--to-trace")

    assert done.exit_code == 0, done.output
    assert "the scores of 4 answers go to phoenix" in done.stderr
    answer = span_with(phoenix, **{"output.value": LIBRARY, "ragspan.contexts.count": 3})
    (row,) = [row for row in phoenix.rows if row["span_id"] == answer["context"]["span_id"]]
    assert (row["name"], row["result"]["score"]) == ("faithfulness", 1.0)
    assert row["identifier"] == f"ragspan:{answer['attributes']['ragspan.record_id']}", "it replaces the live score"


def test_older_traces_are_left_out(evaluate, phoenix):
    newest = phoenix.recorded["traces"][-1]["start_time"]

    assert "1 row evaluated" in evaluate("--since", newest).stdout


def test_a_limit_ends_the_reading(evaluate):
    assert "1 row evaluated by overlap" in evaluate("--limit", 1).stdout


def test_a_project_without_traces_has_no_rows(evaluate):
    done = evaluate(project="empty")

    assert done.exit_code == 0, done.output
    assert "no rows" in done.stderr


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        ((401, "{}"), "http_401 (it wants other credentials)"),
        ((404, "Project not found"), "http_404 (it has no such project"),
        ((503, ""), "http_503"),
        ((500, "{}"), "http_500"),
        ((200, '{"data": [{'), "no_json"),
        ((200, "<html>Hello</html>"), "no_json"),
        ((200, '{"hello": "you"}'), "not as expected (KeyError)"),
        ((200, '{"data": [{"id": "1"}]}'), "not as expected (KeyError)"),
    ],
)
def test_what_cannot_be_read_is_said_without_the_key(evaluate, phoenix, reply, told):
    phoenix.script.append(reply)

    done = evaluate()

    assert done.exit_code == 2
    assert "phoenix cannot be read: " in done.stderr
    assert told in done.stderr
    assert "a-key" not in done.output


def test_an_outage_is_said(evaluate, phoenix):
    phoenix.stop()
    try:
        done = evaluate()
    finally:
        phoenix.start()

    assert done.exit_code == 2
    assert "phoenix cannot be read: ConnectionError" in done.stderr


def test_the_missing_readers_are_named(evaluate, monkeypatch):
    monkeypatch.setitem(sys.modules, "ragspan_otlp.readers", None)
    monkeypatch.delitem(sys.modules, "ragspan_phoenix.stored", raising=False)

    done = evaluate()

    assert done.exit_code == 2
    assert "reading traces needs ragspan-otlp: pip install ragspan-otlp" in done.stderr


def test_what_is_written_before_an_outage_is_kept(evaluate, phoenix, tmp_path):
    phoenix.script += [None, None, (503, "")]
    scores = tmp_path / "scores.jsonl"

    stopped = evaluate("-o", scores)
    assert stopped.exit_code == 2
    assert "http_503" in stopped.stderr

    assert evaluate("-o", scores, "--resume").exit_code == 0
    assert len(scores.read_text().splitlines()) == 4


def test_labels_of_people_become_a_table(pull, ragspan, tmp_path):
    done, rows = pull()

    assert done.exit_code == 0, done.output
    assert [row["label"] for row in rows] == ["pass", "fail"]
    assert rows[0]["response"] == LIBRARY
    assert len(rows[0]["contexts"]) == 3
    assert len(rows[0]["trace_id"]) == 32
    assert len(rows[0]["span_id"]) == 16
    agreed = ragspan("agree", tmp_path / "labels.jsonl", "--metrics", "faithfulness")
    assert "2 of 2 rows have a label" in agreed.stdout, agreed.output


def test_what_judges_wrote_is_no_label(pull):
    done, rows = pull(name="faithfulness")

    assert done.exit_code == 0, done.output
    assert rows == []


def test_the_last_word_counts_and_other_words_by_their_score(pull, phoenix):
    first, second = (one for one in phoenix.recorded["span_annotations"] if one["name"] == "correct")
    later = {"updated_at": "2027-01-01T00:00:00Z", "id": "later"}
    phoenix.recorded["span_annotations"] += [
        first | later | {"result": {"label": "so so", "score": 0.2}},
        second | later | {"result": {"label": "so so", "score": None}},
    ]

    done, rows = pull()

    assert [row["label"] for row in rows] == ["fail"]
    assert "1 more have a label 'correct' that says neither good nor bad" in done.stderr


def test_a_label_on_the_root_is_about_the_traces_only_answer(pull, phoenix):
    labelled = next(one for one in phoenix.recorded["span_annotations"] if one["name"] == "correct")
    answer = next(span for span in phoenix.recorded["spans"] if span["context"]["span_id"] == labelled["span_id"])
    labelled["span_id"] = answer["parent_id"]

    _, rows = pull()

    assert answer["context"]["span_id"] in [row["span_id"] for row in rows]


def test_the_table_is_jsonl(ragspan, tmp_path):
    done = ragspan("labels", "pull", "phoenix", "--project", "p", "--name", "n", "-o", tmp_path / "labels.csv")

    assert done.exit_code == 2
    assert "name it labels.jsonl" in done.stderr
