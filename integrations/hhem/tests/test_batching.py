"""Batches, and the thread that computes them, with a classifier that needs no packages."""

from __future__ import annotations

import json
import os
import queue
import threading

import pytest

from ragspan.exceptions import JudgeError
from ragspan_hhem.prompt import Pair
from ragspan_hhem.verifier import BatchComputer

PATIENCE = 20.0
"""Seconds after which a test gives up waiting for what should have come at once."""


class Doorkeeper:
    """Stands before a call: says who has come, and lets it through when told to."""

    def __init__(self, call):
        self._call = call
        self._arrivals = queue.SimpleQueue()
        self._admissions = threading.Semaphore(0)

    def __call__(self, *args):
        self._arrivals.put(args)
        assert self._admissions.acquire(timeout=PATIENCE)
        return self._call(*args)

    def wait_for_arrival(self):
        self._arrivals.get(timeout=PATIENCE)

    def admit(self, calls=1):
        for _ in range(calls):
            self._admissions.release()

    def admit_all(self):
        self.admit(1000)


@pytest.fixture
def guard():
    """Puts doorkeepers before calls; none is left locked in."""
    doorkeepers = []

    def make(call):
        doorkeepers.append(Doorkeeper(call))
        return doorkeepers[-1]

    yield make
    for doorkeeper in doorkeepers:
        doorkeeper.admit_all()


@pytest.fixture
def computer(letter_classifier):
    return BatchComputer(lambda: letter_classifier)


def ask(computer, *claims):
    return computer.ask([Pair(contexts=(), claim=claim) for claim in claims])


def probabilities(answer):
    return [finding.probability for finding in answer.result(PATIENCE)]


def test_the_classifier_is_loaded_once_and_nobody_who_asks_waits_for_that(letter_classifier, guard):
    loads = []
    load = guard(lambda: loads.append(threading.current_thread().name) or letter_classifier)
    computer = BatchComputer(load)
    answers = [ask(computer, "one"), ask(computer, "three")]
    assert not any(answer.done() for answer in answers)
    load.admit_all()

    assert [probabilities(answer) for answer in answers] == [[0.03], [0.05]]
    assert probabilities(ask(computer, "seven")) == [0.05]
    assert loads == ["ragspan-hhem"]


def failing(*errors, then):
    """A load that raises these errors in turn."""
    waiting = list(errors)

    def load():
        if waiting:
            raise waiting.pop(0)
        return then

    return load


@pytest.mark.parametrize(
    ("error", "error_type", "message"),
    [
        (JudgeError("hhem_unavailable", "fetch it"), "hhem_unavailable", "fetch it"),
        (OSError("no\nspace"), "hhem_failed", "HHEM failed with OSError: no space"),
        (SystemExit(3), "hhem_failed", "HHEM failed with SystemExit: 3"),
    ],
)
def test_if_it_cannot_be_loaded_all_fail_that_wait(letter_classifier, guard, error, error_type, message):
    load = guard(failing(error, then=letter_classifier))
    computer = BatchComputer(load)
    answers = [ask(computer, "one"), ask(computer, "two")]
    load.admit_all()

    for answer in answers:
        with pytest.raises(JudgeError, match=message) as failed:
            answer.result(PATIENCE)
        assert failed.value.error_type == error_type
        assert failed.value.outage


class PanicError(BaseException):
    """As the tokenizer raises it, which is no `Exception`."""


@pytest.mark.parametrize("error", [RuntimeError("no memory"), KeyboardInterrupt(), PanicError()])
def test_what_fails_over_a_question_fails_no_other(computer, letter_classifier, error):
    work = letter_classifier.compute

    def fail(_):
        letter_classifier.compute = work
        raise error

    letter_classifier.compute = fail
    bad, good = ask(computer, "bad"), ask(computer, "good")

    with pytest.raises(JudgeError, match=f"HHEM failed with {type(error).__name__}") as failed:
        bad.result(PATIENCE)
    assert failed.value.error_type == "hhem_failed"
    assert probabilities(good) == [0.04]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # that of a process with threads is what is tested
def test_a_fork_in_the_middle_of_a_batch_begins_anew(letter_classifier, guard):
    loads = []
    computer = BatchComputer(lambda: loads.append(os.getpid()) or letter_classifier)
    compute = letter_classifier.compute
    doorkeeper = letter_classifier.compute = guard(compute)
    answer = ask(computer, "parent")
    doorkeeper.wait_for_arrival()

    def child():
        letter_classifier.compute = compute
        return [probabilities(ask(computer, "the child")), loads[1:] == [os.getpid()], answer.done()]

    assert result_of_fork(child) == [[0.09], True, False]
    doorkeeper.admit_all()
    assert probabilities(answer) == [0.06]


def result_of_fork(child):
    """What the function returns in a fork of this process."""
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            os.write(writing, json.dumps(child()).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as result:
        text = result.read()
    os.waitpid(pid, 0)
    return json.loads(text)
