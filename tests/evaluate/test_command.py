"""What users of `ragspan evaluate` see."""

from __future__ import annotations

import json
import os
from functools import partial
from pathlib import Path

import pytest

from ragspan import installed
from ragspan.evaluate import evaluate_command, sources
from ragspan.evaluate.sources import StoredAnswer, StoredScore
from ragspan.records import RagRecord, SpanAnchor
from ragspan.testing import RecordingEmitter

ANSWERS = """id,question,contexts,answer
a,How high is the tower?,"[""The tower is 330 metres high.""]",The tower is 330 metres high.
b,When was it built?,"[""It was built in 1889.""]",It was built in 1789 by the Romans.
c,Who?,[],Nobody knows.
"""
WRONG = json.loads(Path(__file__).with_name("wrong_options.json").read_text("utf-8"))
"""The table (None without one), the options, and what is said."""
INCOMPLETE = (
    b"question,contexts,answer\nq,It rains.,It rains.\nq,It rains.,\nq,,It rains.\n,It rains.,It rains.\nonly\n"
)


@pytest.fixture
def run(command):
    return partial(command, "evaluate")


@pytest.fixture
def table(write_bytes):
    return write_bytes(ANSWERS.encode())


def test_what_is_evaluated_is_redacted_first(run, table, tmp_path, monkeypatch):
    monkeypatch.setenv("RAGSPAN_REDACT", "string:capwords")
    monkeypatch.setenv("RAGSPAN_EXPLANATIONS", "true")

    done = run(table, "--metrics", "faithfulness", "--report", tmp_path / "r.html", "--output", tmp_path / "r.jsonl")

    assert done.exit_code == 0, done.output
    for file in (tmp_path / "r.html", tmp_path / "r.jsonl"):
        assert "Built In 1789 By The Romans" in file.read_text(encoding="utf-8"), file
        assert "built in 1789 by the Romans" not in file.read_text(encoding="utf-8"), file


@pytest.mark.parametrize(
    ("data", "options", "code", "told"),
    [
        (
            ANSWERS.encode(),
            ["faithfulness=0.8"],
            1,
            "a gate failed: faithfulness should have a mean of at least 0.8, but has 0.5 over 2 scored rows",
        ),
        (INCOMPLETE, ["faithfulness=0.5"], 1, "only 2 of 5 rows have a score"),
        (INCOMPLETE, ["faithfulness=0.5", "--min-scored", "0.45"], 1, "--min-scored is 45%"),
        (b"question,contexts,answer\nonly\n", ["faithfulness=0"], 1, "the judge scored nothing: unreadable 1"),
    ],
)
def test_a_gate_fails_on_a_low_mean_or_skipped_rows_and_the_results_are_there(
    run, write_bytes, tmp_path, data, options, code, told
):
    output = tmp_path / "r.jsonl"
    done = run(write_bytes(data), "--metrics", "faithfulness", "--output", output, "--fail-under", *options)

    assert done.exit_code == code
    assert told in done.stderr
    assert output.exists()


def test_the_worst_responses_are_shown_with_where_they_fail(run, write_bytes):
    table = b"question,contexts,answer\n" + b"".join(
        b"How much %d?,It costs %d euros.,It costs %d euros.\n" % (row, row, row + row % 2) for row in range(1, 11)
    )
    done = run(write_bytes(table), "--metrics", "faithfulness,context_adherence")

    worst = done.stdout.partition("The worst responses\n")[2]
    assert [line for line in worst.splitlines() if line.startswith("row ")] == ["row 1", "row 3", "row 5"]


@pytest.mark.parametrize(("data", "options", "message"), WRONG)
def test_wrong_input_or_options_are_exit_code_2_and_a_sentence(run, write_bytes, data, options, message):
    file = [] if data is None else [write_bytes((ANSWERS if data == "answers" else data).encode())]
    done = run(*file, *options)

    assert (done.exit_code, message in done.stderr) == (2, True), done.stderr


@pytest.mark.parametrize(
    "words", ["evaluate", "agree", "failures -o f.jsonl", "labels pull --project p --name n -o f.jsonl"]
)
def test_each_command_says_what_it_does_and_what_is_wrong(command, words):
    assert [command(*words.split(), last).exit_code for last in ("--help", "nowhere.jsonl")] == [0, 2]


def test_the_files_that_are_written_and_what_changed_from_the_baseline_are_said(run, table, tmp_path):
    baseline, report = tmp_path / "before.jsonl", tmp_path / "r.html"
    run(table, "--metrics", "faithfulness", "--output", baseline)
    done = run(table, "--metrics", "faithfulness", "--compare", baseline, "--report", report)
    bare = run(table, "--metrics", "faithfulness", "--compare", baseline)

    assert f"written: {report}\n" in done.stderr
    for one in (done, bare):
        assert "3 answers are in both runs, paired by record id; left out: 0 only in this run" in one.stdout


def test_what_is_there_and_is_no_file_is_written_itself(run, table, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    reading = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)

    assert run(table, "--metrics", "faithfulness", "--json", tmp_path / "pipe").exit_code == 0
    assert json.loads(os.read(reading, 1 << 16))["rows"] == 3
    os.close(reading)


@pytest.mark.parametrize("words", [["evaluate", "--from", "mlflow"], ["labels", "pull", "mlflow"]])
def test_a_missing_package_is_named(monkeypatch, command, words, tmp_path):
    monkeypatch.setattr(installed, "entry_points", lambda **_: ())
    of_labels = ["--name", "correct", "-o", tmp_path / "labels.jsonl"] if words[0] == "labels" else []

    done = command(*words, "--project", "p", *of_labels)

    assert done.exit_code == 2
    assert "nothing reads mlflow here: pip install 'ragspan[receiver]'" in done.stderr


def broken(project, **_):
    raise KeyError("data")


def test_replies_that_are_not_as_expected_are_said(command, register):
    register("ragspan_source", phoenix=f"{__name__}:broken")
    done = command("evaluate", "--from", "phoenix", "--project", "p")

    assert done.stderr.endswith("phoenix cannot be read: its replies are not as expected (KeyError)\n")


@pytest.mark.parametrize(
    ("variables", "may_quote", "is_sent"),
    [
        ({}, True, True),
        ({"RAGSPAN_EXPLANATIONS": "true"}, True, False),
        ({"RAGSPAN_EXPLANATIONS": "false"}, False, True),
        ({"RAGSPAN_CAPTURE_CONTENT": "false"}, None, True),
    ],
)
def test_with_to_trace_each_score_goes_to_the_span_of_its_answer(run, monkeypatch, variables, may_quote, is_sent):
    spans = [SpanAnchor(trace_id=2**127 + 7, span_id=number, trace_flags=1) for number in range(1, 4)]
    records = [RagRecord(question="q", contexts=["It rains."], response="It rains.", parent=span) for span in spans]
    emitter, options = RecordingEmitter(), {}
    monkeypatch.setattr(emitter, "flush", lambda _: is_sent)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(
        evaluate_command, "stored_answers", lambda *_, **__: (StoredAnswer(record=one) for one in records)
    )
    monkeypatch.setattr(evaluate_command, "emitter_class", lambda _: lambda **given: options.update(given) or emitter)
    done = run("--from", "phoenix", "--project", "p", "--to-trace", "--metrics", "faithfulness")

    assert (done.exit_code, options) == (int(not is_sent), {"explanations": may_quote}), done.output
    assert [(one.span, one.outcomes["faithfulness"].value) for one in emitter.scored] == [(span, 1.0) for span in spans]


def test_a_baseline_that_is_some_other_table_is_told_from_a_result(run, table, write_jsonl):
    done = run(table, "--compare", write_jsonl([{"question": "q"}]))

    assert (done.exit_code, "ragspan evaluate --output writes one" in done.stderr) == (2, True)


def test_a_run_that_cannot_be_continued_says_in_plain_words_what_differs(run, table, tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    options = ("--output", tmp_path / "r.jsonl", "--resume", "--metrics")
    run(table, *options, "context_adherence")
    refused = run(table, *options, "faithfulness", "--limit", 1)
    of_another_judge = run(table, *options, "context_adherence", "--judge", "openai:tiny")

    assert "metrics was context_adherence, is faithfulness" in refused.stderr
    assert "judge of context_adherence was overlap, prompts none, is openai:tiny, prompts" in of_another_judge.stderr
    assert not set("[]{}") & set(refused.stderr)


def test_stopped_before_a_row_was_scored_the_command_says_that(run, table, tmp_path, monkeypatch):
    def stopped(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(evaluate_command, "evaluate", stopped)
    done = run(table, "--output", tmp_path / "r.jsonl")
    (tmp_path / "r.jsonl.partial").touch()
    some = run(table, "--output", tmp_path / "r.jsonl")

    assert (done.exit_code, done.stderr) == (130, "Stopped. No row was scored yet.\n")
    assert "jsonl.partial: continue with the same command and --resume." in some.stderr
    assert "with --output FILE a run can be continued" in run(table).stderr


def test_where_nobody_used_the_name_of_a_label_those_that_there_are_are_listed(command, tmp_path, monkeypatch):
    said = [StoredScore(metric="correct", label="yes")]
    answers = [StoredAnswer(record=RagRecord(question="q", contexts=["c"], response="r"), opinions=said)]
    monkeypatch.setattr(sources, "stored_answers", lambda *_, **__: iter(answers))
    done = command("labels", "pull", "phoenix", "--project", "p", "--name", "corect", "-o", tmp_path / "labels.jsonl")

    assert "no answer has a label 'corect' that a person gave; there are: 'correct'" in done.stderr


@pytest.mark.parametrize(
    ("opinions", "label"),
    [
        ([("correct", "Good ", None)], "pass"),
        ([("correct", "bad", 1.0)], "fail"),
        ([("correct", "perhaps", 0.5)], "pass"),
        ([("correct", None, 0.49)], "fail"),
        ([("correct", "good", None), ("correct", "bad", None)], "fail"),  # the last word counts
        ([("correct", "perhaps", None)], None),
        ([("tone", "good", None)], None),
    ],
)
def test_what_people_said_of_an_answer_becomes_a_label(tmp_path, opinions, label):
    record = RagRecord(question="q", contexts=["c"], response="r", record_id="r-1")
    said = [StoredScore(metric=metric, label=word, value=value) for metric, word, value in opinions]
    written, unclear, names = sources.write_labels(
        tmp_path / "l.jsonl", "correct", iter([StoredAnswer(record=record, opinions=said)] * 2)
    )

    rows = [json.loads(line) for line in (tmp_path / "l.jsonl").read_text("utf-8").splitlines()]
    assert [(row["record_id"], row["label"]) for row in rows] == ([("r-1", label)] * 2 if label else [])
    assert (written, unclear) == (2 * bool(label), 2 * (label is None and opinions[0][0] == "correct"))
    assert names == [opinions[0][0]]
