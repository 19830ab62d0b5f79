"""How far it is."""

from __future__ import annotations

import io

import pytest

from ragspan.datasets.results import BadRow, EvaluatedRow
from ragspan.datasets.summary import RunProgress
from ragspan.datasets.terminal import ProgressDisplay, duration, progress_on_stderr
from ragspan.outcomes import Score, Usage
from ragspan.records import RagRecord

RECORD = RagRecord(question="q", contexts=None, response="r")


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def progress():
    return RunProgress(("m",), share_done=lambda done: done / 100)


def do(progress, rows, *, value=0.5):
    for _ in range(rows):
        outcome = Score(value=value, usage=Usage(requests=1, usd=0.01))
        progress.add(EvaluatedRow(row=progress.done + 1, record=RECORD, outcomes={"m": outcome}))


def shown(clock):
    """What is shown of a run, at once."""
    words = []
    display = ProgressDisplay(lambda text, _share: words.append(text), pause=0, clock=clock)

    def show(progress):
        display(progress)
        return words[-1]

    return show


def test_a_line_tells_rows_rate_time_left_means_bad_rows_and_cost(progress, clock):
    display = shown(clock)
    do(progress, 49)
    progress.add(BadRow(row=50, reason="bad"))
    clock.advance(10)

    assert display(progress) == "50 rows (50%) · 5.0 rows/s · 10 s left · m 0.500 · 1 bad · $0.4900"


def test_without_a_known_size_there_is_no_time_left(clock):
    progress = RunProgress(("m",), share_done=lambda _done: None)
    display = shown(clock)
    do(progress, 20)
    clock.advance(10)

    assert display(progress) == "20 rows · 2.0 rows/s · m 0.500 · $0.2000"


def test_rows_of_an_earlier_run_are_not_counted_into_the_rate(progress, clock):
    display = shown(clock)
    do(progress, 40)
    progress.resumed = 40
    clock.advance(5)
    display(progress)
    do(progress, 20)
    clock.advance(10)

    assert "60 rows (60%) · 2.0 rows/s · 20 s left" in display(progress)


def test_where_there_is_no_terminal_a_line_comes_every_ten_seconds(progress, clock):
    file = io.StringIO()
    with progress_on_stderr(file=file, clock=clock) as on_row:
        for _ in range(25):
            clock.advance(1)
            do(progress, 1)
            on_row(progress)

    assert [line.split(" · ")[0] for line in file.getvalue().splitlines()] == ["10 rows (10%)", "20 rows (20%)"]


def test_on_a_terminal_there_is_a_bar_which_is_gone_in_the_end(progress, clock):
    terminal = Terminal()
    with progress_on_stderr(file=terminal, clock=clock) as on_row:
        do(progress, 50)
        clock.advance(1)
        on_row(progress)

    assert "50 rows (50%)" in terminal.getvalue()


def test_a_quiet_terminal_gets_no_bar(progress):
    terminal = Terminal()
    with progress_on_stderr(quiet=True, file=terminal) as on_row:
        do(progress, 1)
        on_row(progress)

    assert terminal.getvalue() == ""


@pytest.mark.parametrize(("seconds", "text"), [(0.4, "0 s"), (59, "59 s"), (61, "1 min 01 s"), (7325, "2 h 02 min")])
def test_durations_are_said_as_people_say_them(seconds, text):
    assert duration(seconds) == text
