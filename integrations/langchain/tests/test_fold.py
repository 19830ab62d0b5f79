"""What becomes of a log: records of requests that were recorded once, without the framework; `record_logs.py` made them."""

from __future__ import annotations

import copy

import pytest
from captures import Answered
from rag_programs import ANSWER, FOUND, PUMP, QUESTION
from recorded_logs import load

from ragspan.runs.record import record_of

EXPECTED = {
    "chain": Answered(QUESTION, FOUND, ANSWER),
    "left_stream": Answered(QUESTION, FOUND, "It ", "aborted"),
    "failed_model": Answered(QUESTION, FOUND, None, "error", "RuntimeError"),
    "agent": Answered(QUESTION, [PUMP], ANSWER),
    "generator_of_documents": Answered(QUESTION, None, ANSWER),
    "nothing_found": Answered(QUESTION, [], ANSWER),
    "rewritten_documents": Answered(QUESTION, [PUMP.upper()], ANSWER),
    "bare_model": None,
}


@pytest.mark.parametrize("name", EXPECTED)
def test_a_log_becomes_this_record(name):
    record = record_of(load(name))

    assert (record and Answered.of(record)) == EXPECTED[name]


@pytest.mark.parametrize("name", EXPECTED)
def test_a_log_is_not_changed_by_folding_it(name):
    log = load(name)
    before = copy.deepcopy(log.events)
    first, second = record_of(log), record_of(log)

    assert repr(log.events) == repr(before)
    assert (first and first.steps) == (second and second.steps)


def test_an_event_after_the_end_of_its_run_changes_nothing():
    log = load("chain")
    ends = [event for event in log.history if event.kind == "end"]
    log.events.insert(len(log.events) - 1, ends[0]._replace(payload="late"))

    assert Answered.of(record_of(log)) == EXPECTED["chain"]


def test_a_request_whose_inner_runs_never_ended_is_aborted_when_it_is_given_up():
    log = load("chain")
    start_of_model = next(place for place, event in enumerate(log.history) if event.kind == "model")
    del log.events[start_of_model + 1 :]
    log.abandoned = True

    assert Answered.of(record_of(log)) == Answered(QUESTION, FOUND, None, "aborted")


def test_steps_have_the_times_of_their_events():
    log = load("agent")
    record = record_of(log)

    noted = {event.time_ns for event in log.history}
    times = {time for step in record.steps for time in (step.started_ns, step.ended_ns)}
    assert len(record.steps) == 3
    assert times <= noted
    assert (record.started_ns, record.ended_ns) == (log.started_ns, log.ended_ns)


def test_a_request_that_goes_on_has_what_was_found_before():
    beginning, going_on = load("chain"), load("bare_model")
    going_on.earlier = (beginning,)
    going_on.root = None
    going_on.grouped = True
    record = record_of(going_on)

    assert (record.question, record.response) == (QUESTION, ANSWER)
