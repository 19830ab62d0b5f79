"""The order of the checks, their time, and how findings are shown."""

import threading

import pytest

from ragspan.doctor import Finding, exit_code, verdict
from ragspan.doctor.examination import within
from ragspan.exceptions import ConfigurationError


def a_finding(**changes):
    return Finding(**({"check": "record", "code": "arrived", "state": "ok", "found": "all is well"} | changes))


def test_a_check_that_hangs_is_left_behind():
    released, threads = threading.Event(), []

    [found] = within(0.05, "judge", lambda: threads.append(threading.current_thread()) or (released.wait(60) and []))

    released.set()
    assert [thread.daemon for thread in threads] == [True], "the program ends without it"
    words, advice = "the check did not end within 0.05 s", "a larger --timeout may show what hangs on the way"
    assert found == Finding("judge", "did_not_end", "failed", words, advice)


DEFECT = ("check_failed", "failed", "the check itself failed: LookupError: so", "a defect of ragspan: please report it")


@pytest.mark.parametrize(
    ("error", "told"),
    [(ConfigurationError("so"), ("wrong_setting", "failed", "so")), (LookupError("so"), DEFECT)],
)
def test_what_a_check_raises_is_a_finding(error, told):
    def check():
        raise error

    assert within(60.0, "judge", check) == [Finding("judge", *told)]


NOWHERE = "Nothing failed, but no score was seen to arrive anywhere."
TAKEN = "A worker takes the records; its own ragspan doctor says whether scores arrive."


@pytest.mark.parametrize(
    ("finding", "words", "code"),
    [
        (a_finding(), "All is well: scores go where they should.", 0),
        (a_finding(code="no_exporter", state="warning"), f"{NOWHERE} 1 warning.", 0),
        (a_finding(code="worker_takes"), TAKEN, 0),
        (a_finding(state="failed"), "Something is in the way of scores: see what failed above.", 1),
        (a_finding(state="failed", code="wrong_setting"), "A setting cannot be used: see what failed above.", 2),
    ],
)
def test_all_is_well_only_where_scores_arrive(finding, words, code):
    assert (verdict([finding]).plain, exit_code([finding])) == (words, code)
