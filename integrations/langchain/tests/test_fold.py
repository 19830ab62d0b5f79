"""What becomes of a log: the worker folds it without the framework, as often as it likes."""

from __future__ import annotations

import copy

import pytest
from agent_programs import calls, search, search_agent, user_says
from captures import Answered
from rag_programs import ANSWER, FOUND, QUESTION, chat_model, rag_chain

from ragspan.runs.record import record_of

COMPLETE = Answered(QUESTION, FOUND, ANSWER)


@pytest.fixture
def log_of(captured):
    """The log of a program's only request."""

    def run(program, given=QUESTION):
        program.invoke(given, captured.config)
        (log,) = captured.sink.take()
        return log

    return run


def test_a_log_is_not_changed_by_folding_it(log_of):
    log = log_of(search_agent(calls(search("pump")), ANSWER), user_says(QUESTION))
    before = repr(copy.copy(log.events))
    first, second = record_of(log), record_of(log)

    assert repr(log.events) == before
    assert first.steps == second.steps


def test_an_event_after_the_end_of_its_run_changes_nothing(log_of):
    log = log_of(rag_chain())
    ends = [event for event in log.history if event.kind == "end"]
    log.events.insert(len(log.events) - 1, ends[0]._replace(payload="late"))

    assert Answered.of(record_of(log)) == COMPLETE


def test_a_request_whose_inner_runs_never_ended_is_aborted_when_it_is_given_up(log_of):
    log = log_of(rag_chain())
    start_of_model = next(place for place, event in enumerate(log.history) if event.kind == "model")
    del log.events[start_of_model + 1 :]
    log.abandoned = True

    assert Answered.of(record_of(log)) == Answered(QUESTION, FOUND, None, "aborted")


def test_steps_have_the_times_of_their_events(log_of):
    log = log_of(search_agent(calls(search("pump")), ANSWER), user_says(QUESTION))
    record = record_of(log)

    noted = {event.time_ns for event in log.history}
    times = {time for step in record.steps for time in (step.started_ns, step.ended_ns)}
    assert len(record.steps) == 3
    assert times <= noted
    assert (record.started_ns, record.ended_ns) == (log.started_ns, log.ended_ns)


def test_a_request_that_goes_on_has_what_was_found_before(log_of):
    beginning, going_on = log_of(rag_chain()), log_of(chat_model())
    going_on.earlier, going_on.root, going_on.grouped = (beginning,), None, True
    record = record_of(going_on)

    assert (record.question, record.response) == (QUESTION, ANSWER)
