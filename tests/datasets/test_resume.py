"""A run that is stopped or killed at any point, and those that go on with it."""

from __future__ import annotations

import itertools
import os
import stat

import pytest

from ragspan.config import Settings
from ragspan.datasets.journal import journal_of
from ragspan.datasets.run import Plan
from ragspan.datasets.run import run as evaluate_as_planned

ROWS = [{"question": f"q{number}", "contexts": ["c"], "answer": "r" * number} for number in range(8)]
ROWS[2] = ROWS[5] = ROWS[6] = "no row"


class Stop:
    """Says that an end is wanted from the given time on that it is asked."""

    def __init__(self, at=10**9):
        self._asked = itertools.count(1)
        self._at = at
        self.is_wanted = False

    def __call__(self):
        self.is_wanted = self.is_wanted or next(self._asked) >= self._at
        return self.is_wanted


@pytest.fixture
def run(length_metric):
    def carried_out(output, *, resume=False, stop=None, on_row=lambda _: None):
        return evaluate_as_planned(
            Plan(
                data=list(ROWS),
                metrics=[length_metric],
                settings=Settings(judging="thread"),
                output=output,
                resume=resume,
                should_stop=stop or Stop(),
                on_row=on_row,
            )
        )

    return carried_out


@pytest.fixture
def whole(run, tmp_path):
    evaluation = run(tmp_path / "whole.jsonl")
    assert (evaluation.rows, evaluation.bad_row_count) == (5, 3)
    return (tmp_path / "whole.jsonl").read_bytes()


@pytest.fixture
def journal(run, tmp_path):
    """All that a run writes before its end."""
    stop = Stop()

    def on_row(standing):
        stop.is_wanted = standing.done == len(ROWS)

    assert not run(tmp_path / "stopped.jsonl", stop=stop, on_row=on_row).is_complete
    return journal_of(tmp_path / "stopped.jsonl").read_bytes()


def test_a_resumed_run_can_be_stopped_at_any_point_and_resumed_again(run, whole, journal, tmp_path):
    for lines, point in itertools.product((3, 6, 9), range(1, 14)):
        output = tmp_path / f"{lines}-{point}.jsonl"
        begun = b"".join(journal.splitlines(keepends=True)[:lines])
        journal_of(output).write_bytes(begun)
        run(output, resume=True, stop=Stop(at=point))
        if not output.exists():
            kept = journal_of(output).read_bytes()
            assert kept.startswith(begun)
            assert journal.startswith(kept)
            run(output, resume=True)

        assert output.read_bytes() == whole


def test_a_stop_while_the_journal_is_gone_through_writes_nothing(run, journal, tmp_path):
    output = tmp_path / "r.jsonl"
    for point in range(1, len(ROWS) + 1):
        journal_of(output).write_bytes(journal)
        evaluation = run(output, resume=True, stop=Stop(at=point))

        assert evaluation.rows + evaluation.bad_row_count == point - 1
        assert journal_of(output).read_bytes() == journal


def test_a_run_that_was_killed_at_any_byte_can_be_resumed(run, whole, journal, tmp_path):
    ends = [place for place, byte in enumerate(journal, 1) if byte == ord("\n")]
    cuts = {cut for end in ends for cut in (end - 9, end - 1, end, end + 1, end + 9)}
    for cut in sorted(cut for cut in cuts if cut <= len(journal)):
        output = tmp_path / f"{cut}.jsonl"
        journal_of(output).write_bytes(journal[:cut])
        run(output, resume=True)

        assert output.read_bytes() == whole


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_only_the_owner_may_read_the_results(run, tmp_path, ending):
    output = tmp_path / f"r.{ending}"
    before = os.umask(0)
    try:
        output.touch()  # an earlier one that anybody may read
        run(output)
    finally:
        os.umask(before)

    assert stat.S_IMODE(output.stat().st_mode) == 0o600
