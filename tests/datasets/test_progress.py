"""How far it is."""

from __future__ import annotations

import io

import pytest

from ragspan.datasets.progress import Pace, duration, progress_on_stderr, shown
from ragspan.datasets.results import BadRow, EvaluatedRow
from ragspan.datasets.run import Standing
from ragspan.outcomes import Score, Usage
from ragspan.records import RagRecord

RECORD = RagRecord(question="q", contexts=None, response="r")


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def standing():
    return Standing(("m",), share_done=lambda done: done / 100)


def do(standing, rows, *, value=0.5):
    for _ in range(rows):
        outcome = Score(value=value, usage=Usage(requests=1, usd=0.01))
        standing.add(EvaluatedRow(row=standing.done + 1, record=RECORD, outcomes={"m": outcome}))


def test_a_line_tells_rows_rate_time_left_means_bad_rows_and_cost(standing, clock):
    pace = Pace(clock)
    do(standing, 49)
    standing.add(BadRow(row=50, reason="bad"))
    clock.advance(10)
    pace.note(standing)

    assert shown(standing, pace) == "50 rows (50%) · 5.0 rows/s · 10 s left · m 0.500 · 1 bad · $0.4900"


def test_without_a_known_size_there_is_no_time_left(clock):
    standing = Standing(("m",), share_done=lambda _done: None)
    pace = Pace(clock)
    do(standing, 20)
    clock.advance(10)
    pace.note(standing)

    assert shown(standing, pace) == "20 rows · 2.0 rows/s · m 0.500 · $0.2000"


def test_rows_of_an_earlier_run_are_not_counted_into_the_rate(standing, clock):
    pace = Pace(clock)
    do(standing, 40)
    standing.resumed = 40
    clock.advance(5)
    pace.note(standing)
    do(standing, 20)
    clock.advance(10)
    pace.note(standing)

    assert (pace.rows_per_second, pace.seconds_left) == (2.0, pytest.approx(20))


def test_where_there_is_no_terminal_a_line_comes_every_ten_seconds(standing, clock):
    file = io.StringIO()
    with progress_on_stderr(file=file, clock=clock) as on_row:
        for _ in range(25):
            clock.advance(1)
            do(standing, 1)
            on_row(standing)

    assert [line.split(" · ")[0] for line in file.getvalue().splitlines()] == ["10 rows (10%)", "20 rows (20%)"]


def test_on_a_terminal_there_is_a_bar_which_is_gone_in_the_end(standing, clock):
    terminal = Terminal()
    with progress_on_stderr(file=terminal, clock=clock) as on_row:
        do(standing, 50)
        clock.advance(1)
        on_row(standing)

    assert "50 rows (50%)" in terminal.getvalue()


def test_a_quiet_terminal_gets_no_bar(standing):
    terminal = Terminal()
    with progress_on_stderr(quiet=True, file=terminal) as on_row:
        do(standing, 1)
        on_row(standing)

    assert terminal.getvalue() == ""


@pytest.mark.parametrize(("seconds", "text"), [(0.4, "0 s"), (59, "59 s"), (61, "1 min 01 s"), (7325, "2 h 02 min")])
def test_durations_are_said_as_people_say_them(seconds, text):
    assert duration(seconds) == text
