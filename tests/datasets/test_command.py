"""What users of `ragspan evaluate` see."""

from __future__ import annotations

import json
import sys
from importlib.metadata import version

import pytest
from typer.testing import CliRunner

from ragspan.cli import app
from ragspan.datasets import ResultFile

ANSWERS = """id,question,contexts,answer
a,How high is the tower?,"[""The tower is 330 metres high.""]",The tower is 330 metres high.
b,When was it built?,"[""It was built in 1889.""]",It was built in 1789 by the Romans.
c,Who?,[],Nobody knows.
"""


@pytest.fixture
def run(monkeypatch):
    monkeypatch.setenv("RAGSPAN_JUDGING", "thread")
    monkeypatch.setenv("COLUMNS", "120")

    def invoke(*arguments):
        return CliRunner().invoke(app, ["evaluate", *map(str, arguments)])

    return invoke


@pytest.fixture
def table(write_bytes):
    return write_bytes(ANSWERS.encode())


def test_a_summary_of_every_metric_is_printed(run, table):
    done = run(table, "--metrics", "faithfulness,context_utilization")

    assert done.exit_code == 0
    lines = [line.split() for line in done.stdout.splitlines()]
    assert ["faithfulness", "0.500", "0.500", "0.000", "1.000", "0.707", "2", "50%"] in lines
    assert "not scored: no_contexts 1" in done.stdout
    assert "3 rows evaluated" in done.stdout


def test_what_is_evaluated_is_redacted_first(run, table, tmp_path, monkeypatch):
    monkeypatch.setenv("RAGSPAN_REDACT", "string:capwords")
    monkeypatch.setenv("RAGSPAN_EXPLANATIONS", "true")

    done = run(table, "--metrics", "faithfulness", "--report", tmp_path / "r.html", "--output", tmp_path / "r.jsonl")

    assert done.exit_code == 0, done.output
    for file in (tmp_path / "r.html", tmp_path / "r.jsonl"):
        assert "Built In 1789 By The Romans" in file.read_text(encoding="utf-8"), file
        assert "built in 1789 by the Romans" not in file.read_text(encoding="utf-8"), file


def test_rows_that_cannot_be_redacted_are_skipped(run, table, monkeypatch):
    monkeypatch.setenv("RAGSPAN_REDACT", "builtins:len")

    done = run(table, "--metrics", "faithfulness")

    assert "it returned a int, not a str" in done.output
    assert "Romans" not in done.output


def test_results_and_the_summary_are_written_for_programs(run, table, tmp_path):
    done = run(table, "--metrics", "faithfulness", "--output", tmp_path / "r.jsonl", "--json", tmp_path / "s.json")
    summary = json.loads((tmp_path / "s.json").read_text(encoding="utf-8"))

    assert done.exit_code == 0
    assert [result.record_id for result in ResultFile(tmp_path / "r.jsonl").results()] == ["a", "b", "c"]
    assert (summary["rows"], summary["complete"], summary["metrics"]["faithfulness"]["mean"]) == (3, True, 0.5)
    assert summary["metrics"]["faithfulness"]["not_scored"] == {"no_contexts": 1}


def test_a_mean_below_its_minimum_is_exit_code_1_and_the_results_are_there(run, table, tmp_path):
    arguments = (table, "--metrics", "faithfulness", "--output", tmp_path / "r.csv", "--fail-under")
    below = run(*arguments, "faithfulness=0.8")

    assert below.exit_code == 1
    assert "faithfulness should have a mean of at least 0.8, but has 0.5 over 2 scored rows" in below.stderr
    assert (tmp_path / "r.csv").exists()
    assert run(*arguments, "faithfulness=0.5").exit_code == 0


def test_nothing_scored_is_below_any_minimum(run, write_bytes):
    header_only = write_bytes(b"question,contexts,answer\n")
    done = run(header_only, "--fail-under", "faithfulness=0")

    assert done.exit_code == 1
    assert "the table has no rows that can be evaluated" in done.stderr
    assert "nothing was scored: there are no rows" in done.stderr


def test_what_is_read_as_what_is_told(run, write_bytes):
    table = write_bytes(b"user_input,retrieved_contexts,response,reference\nq,one,r,x\n")
    done = run(table, "--metrics", "faithfulness")

    assert "reading question from 'user_input', contexts from 'retrieved_contexts', response from 'resp" in done.stderr


INCOMPLETE = (
    b"question,contexts,answer\nq,It rains.,It rains.\nq,It rains.,\nq,,It rains.\n,It rains.,It rains.\nonly\n"
)


def test_skipped_rows_stand_in_the_last_line(run, write_bytes):
    done = run(write_bytes(INCOMPLETE), "--metrics", "faithfulness")

    assert done.exit_code == 0
    assert done.stdout.splitlines()[-1].startswith(
        "2 rows evaluated by overlap, 3 skipped (no_response 1, contexts_unknown 1, unreadable 1), "
    )


def test_a_gate_fails_on_skipped_rows_unless_they_are_allowed(run, write_bytes):
    arguments = (write_bytes(INCOMPLETE), "--metrics", "faithfulness", "--fail-under", "faithfulness=0.5")
    closed, opened = run(*arguments), run(*arguments, "--allow-skipped")

    assert (closed.exit_code, opened.exit_code) == (1, 0)
    assert "mean of 1 over 2 scored rows, but 3 more had to be skipped" in closed.stderr


def test_an_answer_to_which_a_metric_does_not_apply_passes_a_gate(run, table):
    assert run(table, "--metrics", "faithfulness", "--fail-under", "faithfulness=0.5").exit_code == 0


def test_bad_rows_are_told_on_stderr_ten_at_most(run, write_bytes):
    table = write_bytes(ANSWERS.encode() + b"only one cell\n" * 12)
    done = run(table, "--metrics", "faithfulness")

    assert done.exit_code == 0
    assert "skipped row 4 (line 5): it has 1 cells, but the header has 4" in done.stderr
    assert done.stderr.count("skipped row") == 10
    assert "... and 2 more" in done.stderr


def test_a_bad_row_can_stop_the_run(run, write_bytes):
    done = run(write_bytes(ANSWERS.encode() + b"one cell\n"), "--metrics", "faithfulness", "--on-error", "stop")

    assert done.exit_code == 2
    assert "stopped at a bad row, as --on-error stop asks: row 4 (line 5)" in done.stderr


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "is empty"),
        (b"question,question,contexts,answer\n", "has the column 'question' 2 times"),
        (b"question,text,answer\nq,c,r\n", "no column looks like the contexts"),
        (
            b"question,contexts,answr\nq,c,r\n",
            "is it 'answr'?; name the right one with answer_column= or --answer-column",
        ),
        (b"question,contexts,answer,response\nq,c,r,r\n", "several columns may be the response"),
        (b"question,contexts,answer\nq,c,caf\xe9\n", "is no utf-8 text: try --encoding cp1252"),
        ("question,contexts,answer\n".encode("utf-16"), "try --encoding utf-16"),
    ],
)
def test_a_file_that_is_no_table_is_exit_code_2_and_a_sentence(run, write_bytes, data, message):
    done = run(write_bytes(data))

    assert done.exit_code == 2
    assert message in done.stderr
    assert done.stderr.startswith("ragspan evaluate: ")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--metrics", "faithful"], "did you mean 'faithfulness'"),
        (["--judge", "gpt"], "judge is 'gpt'"),
        (["--fail-under", "faithfulness"], "such as faithfulness=0.8"),
        (["--fail-under", "chunk_attribution=0.8"], "no metric 'chunk_attribution' here"),
        (["--compare", "old.csv"], "give --report FILE.html, too"),
        (["--answer-column", "a", "--ground-truth-column", "b"], "give one of them"),
        (["--resume"], "nothing to resume without the output"),
        (["--format", "xml"], "'xml', but should be one of csv, jsonl, parquet"),
        (["--to-trace"], "no exporter is configured"),
        (["--report", "r.pdf"], "a report is HTML: name it r.html"),
        (["--report", "nowhere/r.html"], "there is no folder 'nowhere': make it first"),
    ],
)
def test_a_wrong_option_is_exit_code_2(run, table, arguments, message):
    done = run(table, *arguments)

    assert done.exit_code == 2
    assert message in done.stderr


def test_a_report_that_cannot_be_written_is_known_before_anything_is_judged(run, table, monkeypatch, tmp_path):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    done = run(table, "--report", tmp_path / "r.html")

    assert done.exit_code == 2
    assert 'pip install "ragspan[report]"' in done.stderr


def test_a_report_is_written_and_compared_with_an_earlier_run(run, table, tmp_path):
    first = run(table, "--metrics", "faithfulness", "--output", tmp_path / "r.csv")
    second = run(
        *(table, "--metrics", "faithfulness", "--report", tmp_path / "r.html", "--compare", tmp_path / "r.csv"),
        *("--plots", tmp_path / "plots"),
    )

    assert (first.exit_code, second.exit_code) == (0, 0), second.stderr
    assert "faithfulness" in (tmp_path / "r.html").read_text(encoding="utf-8")
    assert list((tmp_path / "plots").glob("*.svg"))


def test_the_journal_of_an_earlier_run_is_not_written_over(run, table, tmp_path):
    (tmp_path / "r.csv.partial").write_text('{"journal": 1}\n', encoding="utf-8")
    done = run(table, "--output", tmp_path / "r.csv")

    assert done.exit_code == 2
    assert "--resume" in done.stderr


def test_the_help_of_the_command_needs_no_engine(monkeypatch, run):
    for module in [name for name in sys.modules if name.startswith("ragspan.engine")]:
        monkeypatch.delitem(sys.modules, module)

    assert "--fail-under" in run("--help").stdout
    assert not [name for name in sys.modules if name.startswith("ragspan.engine")]


def test_the_version_is_that_of_the_package():
    done = CliRunner().invoke(app, ["--version"])

    assert (done.exit_code, done.stdout) == (0, f"ragspan {version('ragspan')}\n")
