"""What becomes of a log: the worker folds it without the framework, as often as it likes; and its size."""

from __future__ import annotations

import contextlib
import gc
from collections import Counter

import pytest
from agent_programs import calls, search, search_agent, user_says
from captures import Answered
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableLambda
from rag_programs import ANSWER, FOUND, QUESTION, chat_model, rag_chain, retriever

from ragspan import ScoringEngine
from ragspan.capturing.log import EventKind
from ragspan.judges import OverlapJudge
from ragspan.metrics import Completeness, Faithfulness
from ragspan.request import ModelStep, StepStart, record_of_log
from ragspan_langchain import RagspanCallbackHandler

COMPLETE = Answered(QUESTION, FOUND, ANSWER)


@pytest.fixture
def log_of(captured):
    """The log of a program's only request."""

    def run(program, given=QUESTION):
        program.invoke(given, captured.config)
        (log,) = captured.sink.take()
        return log

    return run


def test_an_event_after_the_end_of_its_run_changes_nothing(log_of):
    log = log_of(rag_chain())
    *start, _, about = next(event for event in log.events if event[0] is EventKind.END)
    log.events.insert(len(log.events) - 1, (*start, "late", about))

    assert Answered.of(record_of_log(log)) == COMPLETE


def test_a_request_whose_inner_runs_never_ended_is_aborted_when_it_is_given_up(log_of):
    log = log_of(rag_chain())
    start_of_model = next(
        place
        for place, (*_, about) in enumerate(log.events)
        if isinstance(about, StepStart) and about.kind is ModelStep
    )
    del log.events[start_of_model + 1 :]
    log.abandoned = True

    assert Answered.of(record_of_log(log)) == Answered(QUESTION, FOUND, None, "aborted")


# The size that a capture says, by which the engine's queue is bounded


LARGE = "page " * 20_000  # 100,000 characters


def size_of(captured):
    return captured.sink.take()[-1].size_hint


PROGRAMS = {
    "input": RunnableLambda(lambda given: "Good day!"),
    "output": RunnableLambda(lambda given: LARGE),
    "output in a field": RunnableLambda(lambda given: {"answer": {"parts": [LARGE]}}),
    "output in a message": RunnableLambda(lambda given: {"messages": [AIMessage(LARGE)]}),
    "output in a call": RunnableLambda(
        lambda given: AIMessage("", tool_calls=[{"name": "a", "args": {"text": LARGE}, "id": "1"}])
    ),
    "prompt": RunnableLambda(lambda given: chat_model().invoke(LARGE).text),
    "reply": RunnableLambda(lambda given: chat_model(LARGE).invoke("Write.").text[:10]),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_large_texts_count_wherever_they_are(captured, name):
    given = {"question": QUESTION, "text": LARGE} if name == "input" else QUESTION
    PROGRAMS[name].invoke(given, captured.config)

    assert 100_000 < size_of(captured) < 250_000


def test_the_tags_and_metadata_of_a_request_count_for_its_size(captured):
    for tags, metadata, parts in (([], {}, 0), (["t", "u"], {}, 2), (["t"], {"a": 1, "b": 2}, 7)):
        RunnableLambda(str).invoke(QUESTION, {**captured.config, "tags": tags, "metadata": metadata})
        assert captured.sink.take()[0].parts == parts


def test_a_small_request_is_small(captured):
    rag_chain().invoke(QUESTION, captured.config)

    assert size_of(captured) < 10_000


# What is left after many requests of every kind


class CountingSink:
    """Counts records by their status and lets them go."""

    def __init__(self):
        self.statuses = Counter()

    def submit(self, capture):
        self.statuses[capture.to_record().status] += 1


def fail(answer):
    raise ZeroDivisionError


def ask_in_every_way(config, program, failing):
    program.invoke(QUESTION, config)
    list(program.stream(QUESTION, config))
    with contextlib.closing(program.stream(QUESTION, config)) as chunks:
        next(chunks)
    with contextlib.suppress(ZeroDivisionError):
        failing.invoke(QUESTION, config)


@pytest.mark.slow
def test_a_thousand_requests_leave_nothing_open_and_no_object_behind():
    sink = CountingSink()
    handler = RagspanCallbackHandler(sink=sink)
    config = {"callbacks": [handler]}
    program, failing = rag_chain(model=chat_model()), rag_chain(model=chat_model()) | fail
    objects = []
    for _ in range(2):
        for _ in range(125):
            ask_in_every_way(config, program, failing)
        gc.collect()
        objects.append(len(gc.get_objects()))

    assert handler.open_runs == 0
    assert sink.statuses == {"complete": 500, "aborted": 250, "error": 250}
    assert objects[1] - objects[0] < 100


def test_answers_that_are_scored_leave_no_cycles_to_the_garbage_collector(left_in_cycles):
    """Garbage in cycles makes the collector go through the whole heap of the application, which stops all of its requests."""
    engine = ScoringEngine(metrics=[Faithfulness(OverlapJudge()), Completeness(OverlapJudge())], judging="thread")
    config = {"callbacks": [RagspanCallbackHandler(sink=engine)]}

    def answer() -> None:
        rag_chain(model=chat_model()).invoke(QUESTION, config)
        search_agent(calls(search("pump")), ANSWER).invoke(user_says(QUESTION), config)
        assert engine.flush(10)

    with contextlib.ExitStack() as stack:
        stack.callback(engine.shutdown, 10)
        answer()  # whatever is made once
        assert left_in_cycles(answer) == []


# Records of long requests, and of documents that are made to be expensive


def test_contexts_are_not_known_where_it_would_take_too_long_to_look_for_them(captured):
    texts = [f"{'a ' * 300}b{number}" for number in range(300)]
    rag_chain(retriever(*texts), formatter=lambda _: "a " * 60_000).invoke(QUESTION, captured.config)

    assert captured.answer().contexts is None
