"""A run that is stopped or killed at any point, and those that go on with it."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import stat

import pytest
from programs import run_python

from ragspan.evaluate import ResultFile, evaluate
from ragspan.evaluate.rows import RowWriter, partial_of
from ragspan.exceptions import TableError
from ragspan.outcomes import Score

ROWS = [{"question": f"q{number}", "contexts": ["c"], "answer": "r" * number} for number in range(8)]
ROWS[2] = ROWS[5] = ROWS[6] = "no row"


@pytest.fixture
def run(length_metric, monkeypatch):
    """Evaluates the table; with `stop_at`, Ctrl-C is pressed as soon as so many rows are written."""
    monkeypatch.setenv("RAGSPAN_JUDGING", "thread")

    def carried_out(output, *, resume=False, stop_at=None):
        written = []

        def add(self, done):
            before(self, done)
            written.append(done)
            if len(written) == stop_at:
                raise KeyboardInterrupt

        before = RowWriter.add
        with monkeypatch.context() as patched, contextlib.suppress(KeyboardInterrupt):
            patched.setattr(RowWriter, "add", add)
            return evaluate(list(ROWS), [length_metric], output=output, resume=resume)

    return carried_out


@pytest.fixture
def whole(run, tmp_path):
    evaluation = run(tmp_path / "whole.jsonl")
    assert (evaluation.rows, evaluation.bad_row_count) == (5, 3)
    return (tmp_path / "whole.jsonl").read_bytes()


@pytest.fixture
def journal(run, tmp_path):
    """All that a run writes before its end."""
    assert run(tmp_path / "stopped.jsonl", stop_at=5) is None
    return partial_of(tmp_path / "stopped.jsonl").read_bytes()


def test_a_resumed_run_can_be_stopped_at_any_row_and_resumed_again(run, whole, journal, tmp_path):
    for lines, point in itertools.product((2, 4), range(1, 3)):
        output = tmp_path / f"{lines}-{point}.jsonl"
        begun = b"".join(journal.splitlines(keepends=True)[:lines])
        partial_of(output).write_bytes(begun)
        assert run(output, resume=True, stop_at=point) is None
        kept = partial_of(output).read_bytes()

        assert kept.count(b"\n") == lines + point
        assert kept.startswith(begun)
        assert journal.startswith(kept)
        run(output, resume=True)
        assert output.read_bytes() == whole


def test_a_run_that_was_killed_at_any_byte_can_be_resumed(run, whole, journal, tmp_path):
    ends = [place for place, byte in enumerate(journal, 1) if byte == ord("\n")]
    cuts = {cut for end in ends for cut in (end - 9, end - 1, end, end + 1, end + 9)}
    for cut in sorted(cut for cut in cuts if cut <= len(journal)):
        output = tmp_path / f"{cut}.jsonl"
        partial_of(output).write_bytes(journal[:cut])
        run(output, resume=True)

        assert output.read_bytes() == whole


@pytest.mark.parametrize("line", [b"no row\n", b'{"row": 1, "outcomes": {"m": {"outcome": "else"}}}\n'])
def test_a_damaged_file_of_rows_is_said_to_be_damaged(journal, tmp_path, line):
    damaged = tmp_path / "d.jsonl"
    damaged.write_bytes(journal.partition(b"\n")[0] + b"\n" + line)

    with pytest.raises(TableError, match="ragspan wrote, or was damaged: evaluate anew"):
        list(ResultFile(damaged).rows())


def test_a_refused_continuation_leaves_no_copy_and_changes_nothing(length_metric, tmp_path):
    output, others = tmp_path / "r.jsonl", [{**ROWS[0], "answer": "other"}]
    evaluate([ROWS[0]], [length_metric], output=output)
    before = output.read_bytes()
    with pytest.raises(TableError, match="row 1 is not what it was"):
        evaluate(others, [length_metric], output=output, resume=True)

    assert (output.read_bytes(), partial_of(output).exists()) == (before, False)
    assert evaluate(others, [length_metric], output=output).rows == 1


def test_columns_that_a_resumed_run_adds_are_in_its_file_and_earlier_ones_stay(length_metric, tmp_path):
    rows = [{**ROWS[row], "model": f"m{row}", "team": "t"} for row in (0, 1)]
    for by in ("team", "model"):
        evaluation = evaluate(rows, [length_metric], by=by, output=tmp_path / "r.jsonl", resume=True)

    assert [row.record.metadata for row in evaluation.all_rows()] == [
        {"team": "t", "model": f"m{row}"} for row in (0, 1)
    ]


def test_rows_of_a_run_that_did_not_end_are_not_replaced(run, tmp_path):
    run(tmp_path / "r.jsonl", stop_at=2)

    with pytest.raises(TableError, match="holds rows of an earlier run that did not come to its end: continue it with"):
        run(tmp_path / "r.jsonl")


@pytest.mark.parametrize(("in_the_way", "said"), [("r.jsonl.partial", "$"), ("r.jsonl", "; rows are in .*partial$")])
def test_rows_that_cannot_be_written_are_an_error(tmp_path, in_the_way, said):
    class MakesFolder:
        name = "folder"

        def score(self, record):
            (tmp_path / in_the_way).mkdir(exist_ok=True)
            return Score(value=1.0)

    with pytest.raises(TableError, match=f"{in_the_way} cannot be written: Is a directory{said}"):
        evaluate([ROWS[0]], [MakesFolder()], output=tmp_path / "r.jsonl")


def test_only_the_owner_may_read_the_rows(run, tmp_path):
    output = tmp_path / "r.jsonl"
    before = os.umask(0)
    try:
        output.touch()  # an earlier one that anybody may read
        run(output, stop_at=2)
        mode = partial_of(output).stat().st_mode
        run(output, resume=True)
    finally:
        os.umask(before)

    assert {stat.S_IMODE(mode), stat.S_IMODE(output.stat().st_mode)} == {0o600}


# Whole programs -------------------------------------------------------------------------------------------------------

INTERRUPTED = """
import json, os, signal, sys, threading
signal.signal(signal.SIGINT, signal.default_int_handler)
reading, writing = os.pipe()
os.dup2(reading, 0)

def feed():
    row = json.dumps({"question": "q", "contexts": ["c"] * 100, "answer": "c"}) + "\\n"
    for _ in range(800):  # more than a pipe holds: the command is reading when the last of it is written
        os.write(writing, row.encode())
    os.kill(os.getpid(), int(sys.argv[2]))

threading.Thread(target=feed, daemon=True).start()
from ragspan.cli import app
app(["evaluate", "-", "--metrics", "context_utilization", "--output", sys.argv[1]])
"""


def program(source, *arguments):
    return run_python("-c", source, *arguments, environment={**os.environ, "RAGSPAN_JUDGING": "thread"})


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_command_says_what_is_done_and_how_to_go_on(tmp_path, number):
    output = tmp_path / "r.jsonl"
    done = program(INTERRUPTED, output, int(number))

    assert (done.returncode, "Traceback" in done.stderr) == (130, False), done.stderr
    assert f"What is done is saved in {partial_of(output)}: continue with the same command and --resume." in done.stderr
    assert "abandoned" not in done.stderr
    assert "time" not in done.stderr
    assert partial_of(output).exists()
    assert not output.exists()
    assert "RAGSPAN_EXIT_TIMEOUT" not in done.stderr
