"""The order of the checks, their time, and how findings are shown."""

import io
import threading

import pytest
from rich.console import Console

from ragspan.doctor import Finding, exit_code, verdict
from ragspan.doctor.examination import within


def printed(renderable):
    console = Console(file=io.StringIO(), width=80)
    console.print(renderable)
    return console.file.getvalue()


def a_finding(**changes):
    return Finding(**({"check": "record", "code": "arrived", "state": "ok", "found": "all is well"} | changes))


def test_a_check_that_hangs_is_left_behind():
    released, threads = threading.Event(), []

    [found] = within(0.05, "judge", lambda: threads.append(threading.current_thread()) or (released.wait(60) and []))

    released.set()
    assert [thread.daemon for thread in threads] == [True], "the program ends without it"
    assert (found.code, found.found) == ("did_not_end", "the check did not end within 0.05 s")


@pytest.mark.parametrize(
    ("finding", "words", "code"),
    [
        (a_finding(), "All is well", 0),
        (a_finding(code="no_exporter", state="warning"), "no score was seen to arrive anywhere. 1 warning.", 0),
        (a_finding(state="failed"), "Something is in the way", 1),
        (a_finding(state="failed", code="wrong_setting"), "A setting cannot be used", 2),
    ],
)
def test_all_is_well_only_where_scores_arrive(finding, words, code):
    assert words in printed(verdict([finding]))
    assert exit_code([finding]) == code
